import type { DriverContract } from "../../../src/manifest/types.ts"
import { rmSync } from "node:fs"
import { join } from "node:path"
import fc from "fast-check"
import { afterEach, describe, expect, it } from "vitest"
import { processCaller } from "../../../src/host/access/caller.ts"
import { placeOf } from "../../../src/host/drivers/paths.ts"
import { defaultConfig } from "../../../src/host/config/types.ts"
import { defaultLimits } from "../../../src/host/limits.ts"
import {
  cliSpec,
  driverOf,
  egress,
  implementationOf,
  type Place,
  programOf,
  sandboxOf,
  scopes,
  routed,
  sealedOf,
  toolOf,
  value,
  type World,
  worldOf,
} from "./values.ts"

const made: Place[] = []
const place = (world: World = {}): Place => {
  const one = worldOf(world)
  made.push(one)
  return one
}
afterEach(() => {
  for (const { folder } of made.splice(0)) rmSync(folder, { recursive: true, force: true })
})
const cliOf = (sandbox: Parameters<typeof sandboxOf>[0]) => ({ ...cliSpec, sandbox: sandboxOf(sandbox) })
const profileOf = async (world: World = {}) => value(await sealedOf(place(world))).profile

describe("seal", () => {
  it("builds the command without a shell: program, bin_args, then one argument a template", async () => {
    const { command } = value(await sealedOf(place(), { input: { text: "; rm -rf / $(x)" } }))
    expect(command.run === "program" && command.argv).toEqual(["/usr/bin/scribe", "-q", "--", "; rm -rf / $(x)"])
  })

  it("freezes the profile through and through, and gives equal profiles one digest", async () => {
    const one = value(await sealedOf(place()))
    const other = value(await sealedOf(place()))
    expect(
      Object.isFrozen(one.profile) &&
        Object.isFrozen(one.profile.env) &&
        Object.isFrozen(one.profile.executables?.spawn),
    ).toBe(true)
    expect(one.profileDigest).toBe(other.profileDigest)
    expect(one.profileDigest).toMatch(/^sha256:[0-9a-f]{64}$/)
  })

  it("tells the hosts, services and budgets of one profile from those of another by the digest", async () => {
    const sealedFor = async (host: string, config: NonNullable<World["config"]> = {}) =>
      value(await sealedOf(place({ drivers: [driverOf({ egress: egress(host) })], config }))).profileDigest
    const digests = [
      await sealedFor("api.good.test"),
      await sealedFor("api.other.test"),
      await sealedFor("api.good.test", {
        egress: { services: { "api.good.test": { address: "127.0.0.1", port: 1 } }, private: [] },
      }),
      await sealedFor("api.good.test", { egress: { services: {}, private: ["10.0.0.0/8"] } }),
      await sealedFor("api.good.test", { egress: { services: {}, private: [], budgets: { requests: 3 } } }),
    ]
    expect(new Set(digests).size).toBe(digests.length)
    expect(await sealedFor("api.good.test")).toBe(digests[0])
  })

  it("gives no network where none is declared", async () => {
    const profile = await profileOf()
    expect(profile.network).toBe("none")
    expect(Object.keys(profile.env).filter((name) => /proxy/i.test(name))).toEqual([])
  })

  it("gives a channel for the declared ports and points every proxy variable at it", async () => {
    const sealed = value(
      await sealedOf(place({ drivers: [driverOf({ egress: egress("api.good.test", "tcp://db.good.test:5432") })] })),
    )
    expect(sealed.profile.network).toEqual({ proxyPort: 3128, transparentPorts: [80, 443, 5432], dns: true })
    for (const name of ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"])
      expect(sealed.profile.env[name]).toBe("http://127.0.0.1:3128")
    expect(sealed.profile.env["NO_PROXY"]).toBe("")
    expect(sealed.egress?.entries.map((entry) => entry.text)).toEqual(["api.good.test", "tcp://db.good.test:5432"])
  })

  it("takes another port for the proxy when a declared host has its port", async () => {
    expect((await profileOf({ drivers: [driverOf({ egress: egress("api.good.test:3128") })] })).network).toMatchObject({
      proxyPort: 13_128,
    })
  })

  it("uses the narrower egress of an implements entry", async () => {
    const narrowed = driverOf({
      egress: egress("api.good.test", "other.test"),
      implements: [implementationOf({ cli: { argv: [], egress: egress("other.test") } })],
    })
    expect(value(await sealedOf(place({ drivers: [narrowed] }))).egress?.entries.map((entry) => entry.text)).toEqual([
      "other.test",
    ])
    const none = driverOf({
      egress: egress("api.good.test"),
      implements: [implementationOf({ cli: { argv: [], egress: [] } })],
    })
    expect((await profileOf({ drivers: [none] })).network).toBe("none")
  })

  it("narrows the budgets by what the driver asks for, and never widens them", async () => {
    const drivers = [
      driverOf({ egress: egress("api.good.test"), egressBudget: { requests: 3, bytesOut: Number.MAX_SAFE_INTEGER } }),
    ]
    expect(value(await sealedOf(place({ drivers }))).egress?.budgets).toMatchObject({
      requests: 3,
      bytesOut: 1024 ** 3,
    })
  })

  it("takes the operator's budgets instead of its own, and lets the driver narrow those", async () => {
    const config = {
      egress: { ...defaultConfig.egress, budgets: { requests: 20_000, bytesOut: 5, idleTimeoutMs: 900 } },
    }
    const drivers = [driverOf({ egress: egress("api.good.test"), egressBudget: { bytesOut: 9, idleTimeoutMs: 300 } })]
    expect(value(await sealedOf(place({ drivers, config }))).egress?.budgets).toMatchObject({
      requests: 20_000,
      bytesOut: 5,
      idleTimeoutMs: 300,
      connectTimeoutMs: 10_000,
    })
  })

  it("forces the network off where the contract requires none", async () => {
    const tool = toolOf({ requires: { network: [], secrets: [], tools: [] } })
    expect((await profileOf({ tool, drivers: [driverOf({ egress: egress("api.good.test") })] })).network).toBe("none")
  })

  it("reaches no host that the operator's list leaves out", async () => {
    const drivers = [driverOf({ egress: egress("api.good.test", "other.test") })]
    const config = { egress: { services: {}, private: [], allow: egress("*.good.test") } }
    expect(value(await sealedOf(place({ drivers, config }))).egress?.entries.map((entry) => entry.text)).toEqual([
      "api.good.test",
    ])
    expect((await profileOf({ drivers, config: { egress: { services: {}, private: [], allow: [] } } })).network).toBe(
      "none",
    )
  })

  it("reports writes over HTTP only for tools that declare no effect outside", async () => {
    const drivers = [driverOf({ egress: egress("api.good.test") })]
    expect(value(await sealedOf(place({ drivers }))).egress?.readOnlyHttp).toBe("report")
    const tool = toolOf({ mutates: scopes("network:*") })
    expect(value(await sealedOf(place({ tool, drivers }), { approved: true })).egress?.readOnlyHttp).toBe("off")
  })

  it("builds the environment from nothing", async () => {
    process.env["CAISSON_TEST_LEAK"] = "leak"
    try {
      const drivers = [
        driverOf({
          body: {
            kind: "cli",
            cli: cliOf({
              env: {
                pass: ["CAISSON_TEST_LEAK", "EDITOR_NAME", "HOME", "PATH", "TZ"],
                set: { EDITOR_NAME: "forced", PATH: "/evil", HTTP_PROXY: "http://evil" },
              },
            }),
          },
        }),
      ]
      const sealed = value(
        await sealedOf(place({ drivers, config: { env: { EDITOR_NAME: "ed", OTHER: "x", TZ: "Asia/Tokyo" } } })),
      )
      expect(sealed.profile.env).toEqual({
        LANG: "C.UTF-8",
        TZ: "Asia/Tokyo",
        EDITOR_NAME: "forced",
        HTTP_PROXY: "http://evil",
        PATH: expect.stringMatching(/^\/usr\/local\/bin:/),
        HOME: "/home/tool",
        TMPDIR: "/tmp",
        USER: "tool",
        LOGNAME: "tool",
      })
      expect(sealed.notes).toEqual([expect.stringContaining("CAISSON_TEST_LEAK")])
    } finally {
      delete process.env["CAISSON_TEST_LEAK"]
    }
  })

  it("lets no driver replace the proxy of a networked call", async () => {
    const drivers = [
      driverOf({
        egress: egress("api.good.test"),
        body: { kind: "cli", cli: cliOf({ env: { pass: [], set: { HTTPS_PROXY: "http://evil", no_proxy: "*" } } }) },
      }),
    ]
    const { env } = await profileOf({ drivers })
    expect([env["HTTPS_PROXY"], env["no_proxy"]]).toEqual(["http://127.0.0.1:3128", ""])
  })

  it("resolves spawn names to fixed paths, leaves absent ones out and says so", async () => {
    const drivers = [
      driverOf({ body: { kind: "cli", cli: cliOf({ exec: { allow: true, spawn: ["git", "nosuch"] } }) } }),
    ]
    const sealed = value(await sealedOf(place({ drivers })))
    expect(sealed.profile.executables).toEqual({
      program: "/usr/bin/scribe",
      children: true,
      spawn: { git: "/usr/bin/git" },
      bundles: {},
    })
    expect(sealed.notes).toEqual([expect.stringContaining("nosuch")])
  })

  it("gives no child processes, whatever spawn lists, unless exec is allowed", async () => {
    const drivers = [driverOf({ body: { kind: "cli", cli: cliOf({ exec: { allow: false, spawn: ["git"] } }) } })]
    expect((await profileOf({ drivers })).executables).toMatchObject({ children: false, spawn: {} })
  })

  it("shows a vendored program's folder and its interpreters, and starts it from there", async () => {
    const program = programOf({
      bundle: "/m/scribe",
      found: "/m/scribe/bin/scribe",
      path: "/m/scribe/bin/scribe",
      interpreters: ["/usr/bin/env", "/usr/bin/python3.11"],
    })
    const sealed = value(await sealedOf(place({ core: { availability: async () => ({ available: true, program }) } })))
    expect(sealed.command).toMatchObject({ run: "program", argv: ["/opt/driver/bin/scribe", "-q", "--", "hello"] })
    expect(sealed.profile.executables).toMatchObject({
      bundles: { "/m/scribe": "/opt/driver" },
      spawn: { env: "/usr/bin/env", "python3.11": "/usr/bin/python3.11" },
      children: false,
    })
  })

  it("keeps driver state apart from the workspace, one folder for each driver, workspace and user", async () => {
    const drivers = [
      driverOf({
        body: {
          kind: "cli",
          cli: cliOf({ fs: { read: ["**"], write: ["notes/**", "~/.config/scribe/**"], deny: ["**/.env"] } }),
        },
      }),
    ]
    const here = place({ drivers })
    const alice = value(await sealedOf(here)).profile
    const bob = value(await sealedOf(here, { caller: processCaller("bob") })).profile
    expect(alice).toMatchObject({
      write: ["notes/**"],
      view: { read: ["**"], deny: ["**/.env"] },
      home: { keep: [".config/scribe/**"] },
    })
    expect(alice.home?.dir.startsWith(join(here.core.data, "homes/"))).toBe(true)
    expect(alice.home?.dir).not.toBe(bob.home?.dir)
  })

  it("uses the narrower sandbox of an implements entry", async () => {
    const implementation = implementationOf({
      cli: { argv: [], sandbox: sandboxOf({ fs: { read: ["notes/**"], write: [], deny: [] } }) },
    })
    expect(await profileOf({ drivers: [driverOf({ implements: [implementation] })] })).toMatchObject({
      view: { read: ["notes/**"] },
      write: [],
    })
  })

  it.each([
    ["nobody named any", {}, {}, {}, ["wallMs"]],
    ["the driver asks for more than the default", { memoryMb: 1 << 20 }, {}, {}, ["memoryBytes", "wallMs"]],
    [
      "the driver asks for less",
      { memoryMb: 64, cpuMs: 100, pids: 5 },
      {},
      { memoryBytes: 64 << 20, cpuMs: 100, pids: 5 },
      ["cpuMs", "memoryBytes", "pids", "wallMs"],
    ],
    ["the operator raises a default", {}, { pids: 1000 }, { pids: 1000 }, ["pids", "wallMs"]],
    ["the operator allows less time", {}, { wallMs: 100 }, { wallMs: 100 }, ["wallMs"]],
    ["the operator allows more time than the contract", {}, { wallMs: 60_000 }, {}, ["wallMs"]],
  ])("limits the call when %s", async (_what, driver, operator, limits, required) => {
    const profile = await profileOf({ drivers: [driverOf({ limits: driver })], config: { limits: operator } })
    expect(profile.limits).toEqual({ ...defaultLimits, wallMs: 5_000, ...limits })
    expect(profile.required).toEqual(required)
  })

  it.each([
    ["ingress", { ingress: ["/callback"] }, "declares ingress"],
    [
      "a runner image",
      {
        runner: {
          form: "inline",
          engine: "sandbox",
          image: "python:3",
          needs: { native: [], npm: [], pip: [] },
          limits: {},
        },
      },
      "a runner image",
    ],
    [
      "a runner that is not known",
      { runner: { form: "ref", ref: "hypervisor" } },
      "a runner that this host does not have",
    ],
    [
      "a runner that is described elsewhere",
      { runner: { form: "file", file: "./RUNNER.md" } },
      "a runner that this host",
    ],
    [
      "a pattern that cannot be read",
      { body: { kind: "cli", cli: cliOf({ fs: { read: ["**"], write: [], deny: ["a/../b"] } }) } },
      "a pattern of `sandbox.fs` cannot be used",
    ],
  ] satisfies [string, Partial<DriverContract>, string][])(
    "refuses a driver with %s before anything runs, and routes around it",
    async (_what, change, reason) => {
      const unable = driverOf(change)
      expect(await routed(place({ drivers: [unable] }))).toMatchObject({
        code: "sandbox_unavailable",
        details: { route: [{ phase: "capability", reason: expect.stringContaining(reason) }] },
      })
      const able = driverOf({ id: "zz-able" })
      expect(value(await routed(place({ drivers: [unable, able] }))).driver.contract.id).toBe("zz-able")
    },
  )
})

describe("the place that an fs pattern speaks of", () => {
  it.each([
    ["**", { where: "workspace", glob: "**" }],
    ["./inventory/**", { where: "workspace", glob: "./inventory/**" }],
    ["/workspace/a", { where: "workspace", glob: "a" }],
    ["/workspace", { where: "workspace", glob: "/" }],
    ["/workspaces/a", { where: "base" }],
    ["~", { where: "home", glob: "/" }],
    ["~/.config/**", { where: "home", glob: ".config/**" }],
    ["/home/tool/x", { where: "home", glob: "x" }],
    ["/tmp/x", { where: "scratch" }],
    ["/etc/passwd", { where: "base" }],
  ])("%s", (pattern, where) => {
    expect(placeOf(pattern)).toEqual(where)
  })

  it("never takes an absolute path for a workspace path unless it lies below /workspace", () => {
    fc.assert(
      fc.property(fc.string(), (rest) => {
        const found = placeOf(`/${rest}`)
        return found.where !== "workspace" || rest === "workspace" || rest.startsWith("workspace/")
      }),
    )
  })
})
