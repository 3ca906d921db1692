import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterEach, beforeEach, describe, expect, it } from "vitest"
import { createHost } from "../../../src/host/host.ts"
import type { Availability, Host } from "../../../src/host/types.ts"
import { fakeBackend } from "../call/fake-backend.ts"

let folder: string
let workspace: string
beforeEach(() => {
  folder = realpathSync(mkdtempSync(join(tmpdir(), "caisson-listing-")))
  workspace = join(folder, "work")
  for (const name of ["work", "m/tool", "m/driver"]) mkdirSync(join(folder, name), { recursive: true })
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

const write = (name: string, text: string): void => writeFileSync(join(folder, name), text, { mode: 0o600 })

interface World {
  readonly tool?: string
  readonly driver?: string
  readonly config?: string
  readonly inputs?: string
  readonly argv?: string
  readonly version?: string
  readonly files?: Readonly<Record<string, string>>
}

const hostOf = async ({
  tool = "",
  driver = "",
  config = "",
  inputs = "{ type: object, properties: { q: { type: string } } }",
  argv = "[]",
  version = "1.2.3",
  files = {},
}: World): Promise<Host> => {
  write(
    "m/tool/TOOL.md",
    `---\nname: A\nid: a.tool\ndescription: A tool.\nversion: 1.0.0\ninputs: ${inputs}\noutputs: { type: string }\n${tool}\n---\n`,
  )
  write(
    "m/driver/DRIVER.md",
    `---\nname: D\nid: a-driver\ndescription: A driver.\nversion: 1.0.0\nkind: cli\nbin: "true"\n${
      driver.includes("version_check")
        ? ""
        : "version_check: { cmd: 'true --version', parse: '([0-9.]+)', range: '>=1' }\n"
    }install: [{ method: apt, package: coreutils }]\n` +
      `sandbox: { network: { egress: [] }, fs: { read: [], write: [], deny: [] }, exec: { allow: false }, env: { pass: [], set: {} } }\n${driver}\n` +
      `implements:\n  - { tool: ../tool/TOOL.md, version: ^1.0.0, metadata: { cli: { argv: ${argv} } } }\n---\n`,
  )
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(join(folder, name, ".."), { recursive: true })
    write(name, text)
  }
  write("caisson.yaml", config)
  return createHost({
    data: join(folder, "data"),
    config: join(folder, "caisson.yaml"),
    ...(config.includes("manifests:") ? {} : { manifests: [join(folder, "m")] }),
    backend: fakeBackend(...Array.from({ length: 100 }, () => ({ stdout: version }))),
  })
}

const told = async (host: Host): Promise<{ tool: Availability | undefined; driver: Availability | undefined }> => ({
  tool: (await host.tools()).find((one) => one.contract.id === "a.tool")?.availability,
  driver: (await host.drivers()).find((one) => one.contract.id === "a-driver")?.availability,
})

describe("availability in the listings", () => {
  it("is there for a driver that passes every filter", async () => {
    await using host = await hostOf({})
    expect(await told(host)).toEqual({
      tool: { available: true, version: "1.2.3" },
      driver: { available: true, version: "1.2.3" },
    })
    expect(await host.why({ tool: "a.tool", workspace, input: {} })).not.toHaveProperty("error")
  })

  const grants =
    '---\nschema: policy/v1\nid: "@acme/team"\ndefault: deny\ngrants: [{ principal: "*", actions: [{ action: "a:b" }] }]\n---\n'
  // biome-ignore format: a table reads by rows
  it.each<[string, World, string, RegExp]>([
    ["whose program is of a version out of range", { version: "0.9.0" }, "version_mismatch", /0\.9\.0 is installed/],
    ["of a kind that the contract forbids", { tool: "driver_constraints: { forbid: [cli] }" }, "no_route", /forbids drivers of kind cli/],
    ["with a tag that the operator denies", { driver: "policy_tags: [beta]", config: "policy_tags: { deny: [beta] }\n" }, "policy_violation", /denies its tag `beta`/],
    ["in another region", { config: "region: eu\n" }, "no_route", /declares no region/],
    ["that needs a login", { driver: "auth: { state: { env: [API_KEY] }, login: { cmd: x } }" }, "auth_required", /needs a login/],
    ["with set-up steps to do", { driver: "setup: [{ id: one, kind: cmd, cmd: x }]" }, "setup_required", /set-up/],
    ["with a runner that cannot be had", { driver: "runner: { engine: sandbox, image: 'python:3' }" }, "sandbox_unavailable", /runner image/],
    ["for a tool whose secrets are not there", { tool: "requires: { secrets: [api-key] }" }, "auth_required", /secrets/],
    ["for a tool whose policy is not registered", { tool: "approval: policy:team/review" }, "policy_violation", /team\/review/],
    ["that no grant of the operator's covers", { config: "manifests: [./m]\n", files: { "m/policy/POLICY.md": grants } }, "unauthorised", /@acme\/team .* no grant covers it/],
  ])("is denied a driver %s, with the code that why and call end with", async (_, world, code, reason) => {
    await using host = await hostOf(world)
    const { tool, driver } = await told(host)
    expect(tool).toMatchObject({ available: false, code, reason: expect.stringMatching(reason) })
    expect(driver).toMatchObject({ available: false, code })
    expect(await host.why({ tool: "a.tool", workspace, input: {} })).toMatchObject({ error: { code } })
    expect(await host.call({ tool: "a.tool", workspace, input: {} })).toMatchObject({ ok: false, error: { code } })
  })

  it("tells a policy by name that holds nobody back, and goes on", async () => {
    await using host = await hostOf({ files: { "m/policy/POLICY.md": grants } })
    expect(host.diagnostics()).toMatchObject([
      { rule: "policy-not-enforced", severity: "warning", message: expect.stringContaining("@acme/team") },
    ])
    expect((await told(host)).tool).toMatchObject({ available: true })
  })
})

describe("why", () => {
  it.each<[string, World, string]>([
    ["an input that would be taken for an option", { argv: '["${input.q}"]' }, "input_invalid"],
    ["an optional input that the only driver cannot do without", { argv: '["--x=${input.other}"]' }, "input_invalid"],
  ])("ends with the code of the call for %s", async (_, world, code) => {
    const inputs = "{ type: object, properties: { q: { type: string }, other: { type: string } } }"
    await using host = await hostOf({ ...world, inputs })
    const request = { tool: "a.tool", workspace, input: { q: "-rf" } }
    expect(await host.call(request)).toMatchObject({ error: { code } })
    expect(await host.why(request)).toMatchObject({ error: { code } })
    expect(await host.why({ tool: "a.tool", workspace })).not.toHaveProperty("error")
  })

  it("ends with what this machine cannot enforce", async () => {
    await using _one = await hostOf({})
    const refuse = { ok: false, control: "memory", message: "no cgroup here", fix: "mount one" } as const
    await using host = await createHost({
      data: join(folder, "data"),
      manifests: [join(folder, "m")],
      backend: fakeBackend({ stdout: "1.2.3" }, { refuse }),
    })
    expect(await host.why({ tool: "a.tool", workspace, input: {} })).toMatchObject({
      error: { code: "sandbox_unavailable", message: "no cgroup here", hint: "mount one" },
    })
  })
})

describe("the drivers of a listed tool", () => {
  const beside = (id: string, more: string): string =>
    `---\nname: ${id}\nid: ${id}\ndescription: Another.\nversion: 1.0.0\nkind: cli\nbin: "true"\n` +
    `version_check: { cmd: 'true --version', parse: '([0-9.]+)', range: '>=1' }\ninstall: [{ method: apt, package: coreutils }]\n` +
    `sandbox: { network: { egress: [] }, fs: { read: [], write: [], deny: [] }, exec: { allow: false }, env: { pass: [], set: {} } }\n${more}\n` +
    `implements:\n  - { tool: ../tool/TOOL.md, version: ^1.0.0, metadata: { cli: { argv: [] } } }\n---\n`

  it("are counted by what a call would find of them", async () => {
    const auth = "auth: { state: { env: [API_KEY] }, login: { cmd: x } }"
    await using host = await hostOf({
      files: {
        "m/locked/DRIVER.md": beside("locked", auth),
        "m/gone/DRIVER.md": beside("gone", "").replace('bin: "true"', "bin: no-such-program-here"),
      },
    })
    expect((await host.tools()).find((one) => one.contract.id === "a.tool")).toMatchObject({
      availability: { available: true },
      unauthed: 1,
      unavailable: 1,
    })
  })
})
