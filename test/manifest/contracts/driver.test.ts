import { describe, expect, it } from "vitest"
import { cliOf } from "../../../src/manifest/kinds/body.ts"
import { limits } from "../../../src/manifest/limits.ts"
import { asDriver, cliFront, errors, load, warnings } from "../from-text.ts"

const driver = (parts: Parameters<typeof cliFront>[0], mode: "strict" | "compat" = "compat") =>
  load("DRIVER.md", cliFront(parts), mode)
const sandbox = (inner: string): string =>
  `{ fs: { read: ["**"], write: ["out/**"] }, exec: { allow: true, spawn: [git] }, env: { pass: [LANG] }, ${inner} }`

describe("DRIVER.md of kind cli", () => {
  it("reads absent parts as the tightest", () => {
    const made = asDriver(driver({ sandbox: "{ fs: {}, exec: { allow: false } }" }, "strict"))
    expect(cliOf(made)?.sandbox).toEqual({
      fs: { read: [], write: [], deny: [] },
      exec: { allow: false, spawn: [] },
      env: { pass: [], set: {} },
      tty: { required: false },
    })
    expect(made).toMatchObject({
      egress: [],
      egressFrom: "none",
      region: ["global"],
      regionDeclared: false,
      limits: {},
    })
    expect(cliOf(made)?.output).toMatchObject({ defaultFormat: "text", stream: "stdout", errorStream: "stderr" })
  })

  it.each([
    ["only network", "{ egress: [a.test] }", sandbox("tty: {}"), "network", ["a.test"]],
    ["only sandbox.network", undefined, sandbox("network: { egress: [b.test] }"), "sandbox.network", ["b.test"]],
    [
      "both: what both allow",
      '{ egress: [a.test, "*.c.test"] }',
      sandbox("network: { egress: [a.test:443, x.c.test] }"),
      "both",
      ["a.test:443", "x.c.test"],
    ],
    ["both, one of them empty: nothing", "{ egress: [a.test] }", sandbox("network: { egress: [] }"), "both", []],
    ["neither: nothing", undefined, sandbox("tty: {}"), "none", []],
  ])("takes its egress from %s (C-2)", (_name, network, box, from, expected) => {
    const made = asDriver(driver(network === undefined ? { sandbox: box } : { network, sandbox: box }))
    expect(made.egressFrom).toBe(from)
    expect(made.egress.map((e) => e.text)).toEqual(expected)
  })

  it("gives the corrected spelling of an egress entry", () => {
    const result = driver({ network: '{ egress: ["API.Good.test."] }' })
    expect(errors(result)).toEqual(["egress-entry @ network.egress[0]"])
    expect(result.diagnostics[0]?.fix).toBe("write `api.good.test`")
  })

  it("knows a declared region from the default (C-22)", () => {
    expect(asDriver(driver({ extra: "region: [global]" }))).toMatchObject({ region: ["global"], regionDeclared: true })
  })

  it("reads limits and budgets", () => {
    const made = asDriver(
      driver(
        {
          extra:
            "runner: { limits: { memory_mb: 64, timeout_ms: 900, cpu_ms: 800 } }\nmetadata: { limits: { disk_mb: 5, pids: 6, output_bytes: 7 }, egress_budget: { bytes_out: 1, requests: 2 } }",
        },
        "strict",
      ),
    )
    expect(made.limits).toEqual({ memoryMb: 64, timeoutMs: 900, cpuMs: 800, diskMb: 5, pids: 6, outputBytes: 7 })
    expect(made.egressBudget).toEqual({ bytesOut: 1, requests: 2 })
  })
  it("refuses a limit it does not know", () => {
    expect(errors(driver({ extra: "metadata: { limits: { disc_mb: 5 } }" }))).toEqual([
      "unknown-key @ metadata.limits.disc_mb",
    ])
    expect(errors(driver({ extra: "runner: { limits: { memory_mb: 0 } }" }))).toEqual([
      "out-of-range @ runner.limits.memory_mb",
    ])
  })

  it("accepts a runner by slug, by reference and by file (C-26)", () => {
    for (const runner of [
      "heavy",
      "{ ref: team/heavy }",
      "{ file: ./RUNNER.md }",
      "{ inline: { engine: sandbox, image: x } }",
    ])
      expect(asDriver(driver({ extra: `runner: ${runner}` }, "strict")).runner).toBeDefined()
  })
  it.each(["code: ./shared", "run: tool.ts", "code: { sources: [] }\nrun: [python, -m, x]"])(
    "never serves a driver of kind cli that is composed by %j, and says so by name",
    (extra) => {
      expect(asDriver(driver({ extra })).unusable).toMatch(/\(AIP-26\).*kind cli/)
      expect(errors(driver({ extra }, "strict"))).toEqual(["driver-code @ kind"])
    },
  )
  it("refuses an image without the sandbox engine", () => {
    expect(errors(driver({ extra: "runner: { image: x }" }))).toEqual(["runner-image @ runner.image"])
  })

  it("reads a tool's own sandbox as a narrowing (C-5), inheriting what it leaves out", () => {
    const made = asDriver(
      driver(
        {
          network: "{ egress: [a.test, b.test] }",
          implements:
            '[{ tool: t.one, version: ^1.0.0, metadata: { cli: { argv: [], sandbox: { network: { egress: [b.test:443] }, fs: { write: ["out/x/*"], deny: [secret/**] }, exec: { allow: false } } } } }]',
        },
        "strict",
      ),
    )
    expect(made.implements[0]?.cli?.sandbox).toEqual({
      fs: { read: ["**"], write: ["out/x/*"], deny: ["secret/**"] },
      exec: { allow: false, spawn: [] },
      env: { pass: ["LANG"], set: {} },
      tty: { required: false },
    })
    expect(made.implements[0]?.cli?.egress?.map((e) => e.text)).toEqual(["b.test:443"])
  })
  it.each([
    ["fs.write", 'fs: { write: ["**"] }'],
    ["fs.read", 'fs: { read: ["/etc/**"] }'],
    ["exec.spawn", "exec: { allow: true, spawn: [sh] }"],
    ["env.pass", "env: { pass: [AWS_PROFILE] }"],
    ["env.set", "env: { set: { LD_PRELOAD: x } }"],
    ["network.egress", "network: { egress: [evil.test] }"],
    ["network.egress", 'network: { egress: ["*.a.test"] }'],
  ])("refuses a tool's sandbox that widens %s: %s", (part, inner) => {
    const result = driver({
      network: "{ egress: [a.test] }",
      implements: `[{ tool: t.one, version: ^1.0.0, metadata: { cli: { argv: [], sandbox: { ${inner} } } } }]`,
    })
    expect(errors(result)).toEqual([`sandbox-widened @ implements[0].metadata.cli.sandbox.${part}`])
  })
  it("refuses a tool that starts programs when its driver does not", () => {
    const result = driver({
      sandbox: "{ fs: {}, exec: { allow: false } }",
      implements:
        "[{ tool: t.one, version: ^1.0.0, metadata: { cli: { argv: [], sandbox: { exec: { allow: true } } } } }]",
    })
    expect(errors(result)).toEqual(["sandbox-widened @ implements[0].metadata.cli.sandbox.exec.allow"])
  })

  it.each([["&&"], ["|"], [">"], ["2>&1"], [";"], ["$(id)"], ["a$(id)b"]])(
    "refuses the shell in an argument: %s",
    (argument) => {
      const result = driver({
        implements: `[{ tool: t.one, version: ^1.0.0, metadata: { cli: { argv: [${JSON.stringify(argument)}] } } }]`,
      })
      expect(errors(result)).toEqual(["argv-shell @ implements[0].metadata.cli.argv[0]"])
    },
  )
  it.each(["--filter=a|b", "a;b", "<none>", "`x`", "${input.q | default('x')}"])(
    "lets a plain argument be: %s",
    (argument) => {
      expect(
        driver({
          implements: `[{ tool: t.one, version: ^1.0.0, metadata: { cli: { argv: [${JSON.stringify(argument)}] } } }]`,
        }).diagnostics,
      ).toEqual([])
    },
  )
  it.each([".a | .b", "x && y", "SELECT 1 > 0"])(
    "asks about an argument that may have been meant for a shell: %s",
    (argument) => {
      const result = driver({
        implements: `[{ tool: t.one, version: ^1.0.0, metadata: { cli: { argv: [${JSON.stringify(argument)}] } } }]`,
      })
      expect(result.ok).toBe(true)
      expect(warnings(result)).toEqual(["argv-shell-like @ implements[0].metadata.cli.argv[0]"])
    },
  )

  it("keeps unusable install methods with their reason (C-30)", () => {
    const made = asDriver(
      driver({
        extra:
          "install: [{ method: flatpak, app: x }, { method: apt, package: prog, experimental: true }, { method: curl, url: 'https://x.test/i.sh' }, { method: download, url: 'https://x.test/i', extract_bin: i, verify_sha256: TODO }, { method: apt, package: prog }]",
      }),
    )
    expect(made.install.map((m) => [m.method, m.usable, m.usable ? undefined : m.reason])).toEqual([
      ["flatpak", false, "unknown install method"],
      ["apt", false, "experimental"],
      ["curl", true, undefined],
      ["download", false, "its hash is a placeholder"],
      ["apt", true, undefined],
    ])
  })
  it.each(["{ method: vendored, path: ../x }", "{ method: vendored, path: /usr/bin/x }"])(
    "refuses a vendored program outside the folder: %s",
    (method) => {
      expect(errors(driver({ extra: `install: [${method}]` }))).toEqual(["path-escape @ install[0].path"])
    },
  )
  it.each([
    ["a package that would be an option", "{ method: apt, package: '--allow-downgrades' }"],
    ["a key that the method does not have", "{ method: npm, package: x, registry: 'https://evil.test' }"],
    ["no package", "{ method: brew }"],
    ["an unknown method", "{ method: teleport, to: here }"],
  ])("never uses an install method with %s, and keeps the manifest in compat mode", (_, method) => {
    const result = driver({ extra: `install: [${method}, { method: apt, package: prog }]` })
    expect(errors(result)).toEqual([])
    expect(asDriver(result).install.map((each) => each.usable)).toEqual([false, true])
    expect(warnings(result)).toHaveLength(1)
  })

  it("refuses an install package that would be an option in strict mode", () => {
    const extra = "install: [{ method: apt, package: '--allow-downgrades' }]"
    expect(errors(driver({ extra }, "strict"))).toEqual(["bad-value @ install[0].package"])
  })

  it.each(["spec: driver/v1", "spec: { openapi: 'https://api.test/openapi.json' }"])(
    "takes a driver with %s",
    (extra) => {
      expect(errors(driver({ extra }, "strict"))).toEqual([])
    },
  )

  it("keeps what a call costs, in which class and currency, of the driver and of an entry", () => {
    const cost = "cost_override: { cost_units_per_call: 3, cost_class: metered, currency: EUR }"
    const implementing = `[{ tool: t.one, version: ^1.0.0, cost_override: { cost_class: expensive }, metadata: { cli: { argv: [] } } }]`
    const made = asDriver(driver({ extra: cost, implements: implementing }))
    expect(made).toMatchObject({ costUnitsPerCall: 3, costClass: "metered", currency: "EUR" })
    expect(made.implements[0]).toMatchObject({ costClass: "expensive" })
  })

  it("takes an empty command for none (C-32)", () => {
    const made = asDriver(driver({ extra: 'auth: { state: { env: [X_TOKEN] }, refresh: { cmd: "" } }' }))
    expect(made.auth).toEqual({ state: { paths: [], env: ["X_TOKEN"] } })
  })
  it("finds login state that the sandbox cannot reach", () => {
    expect(errors(driver({ extra: 'auth: { state: { paths: ["~/.prog"] } }' }))).toEqual([
      "state-path-unreachable @ auth.state.paths[0]",
    ])
    expect(
      errors(
        driver({
          sandbox: '{ fs: { read: ["~/.prog/**"] }, exec: { allow: false } }',
          extra: 'auth: { state: { paths: ["~/.prog", "~/.prog/session.json"] } }',
        }),
      ),
    ).toEqual([])
  })
  it("holds bin_args to the same rules as argv", () => {
    expect(errors(driver({ extra: 'bin_args: ["--ok", "|", "--key=${secrets.k}"]' }))).toEqual([
      "argv-shell @ bin_args[1]",
      "secret-in-argv @ bin_args[2]",
    ])
  })
  it("refuses one tool implemented twice, and takes two majors of it", () => {
    const twice = (one: string, two: string): string[] =>
      errors(driver({ implements: `[{ tool: ${one} }, { tool: ${two} }]` }))
    expect(twice("t.one, version: '1'", "t.one, version: '>=1'")).toEqual(["implements-duplicate @ implements[1]"])
    expect(twice("t.one, version: '1'", "t.one, version: '2'")).toEqual([])
    expect(twice("t.one@1, version: '*'", "t.one@2, version: '*'")).toEqual([])
  })
  it("needs a command or a probe for the health check it names", () => {
    expect(errors(driver({ extra: "health_check: { method: exec }" }))).toEqual(["missing-field @ health_check.cmd"])
    expect(errors(driver({ extra: "health_check: { method: http }" }))).toEqual(["missing-field @ health_check.http"])
  })
  it("ignores values for what the host builds itself, and says so (C-49)", () => {
    const result = driver({ sandbox: "{ fs: {}, exec: { allow: false }, env: { set: { PATH: /evil, LC_ALL: C } } }" })
    expect(warnings(result)).toEqual(["env-from-host @ sandbox.env.set.PATH"])
    expect(cliOf(asDriver(result))?.sandbox.env.set).toEqual({ LC_ALL: "C" })
  })
})

describe("DRIVER.md of other kinds", () => {
  const http = (extra: string): string =>
    `name: H\nid: h-one\ndescription: d\nversion: 1.0.0\nkind: http\nimplements: [{ tool: t.one, version: ^1.0.0, metadata: { http: { endpoint: /x } } }]\n${extra}`
  it("derives base_url from the only exact host in compat mode", () => {
    expect(asDriver(load("DRIVER.md", http("network: { egress: ['api.one.test:8443'] }"))).body).toMatchObject({
      http: { base: { origin: "https://api.one.test:8443", host: "api.one.test", port: 8443, secure: true, path: "" } },
    })
    expect(asDriver(load("DRIVER.md", http("network: { egress: [api.one.test] }"))).unusable).toBeUndefined()
  })
  it.each(["[a.test, b.test]", '["*.a.test"]', "[]"])(
    "marks an http driver unusable when its host cannot be told: %s",
    (egress) => {
      expect(asDriver(load("DRIVER.md", http(`network: { egress: ${egress} }`))).unusable).toContain("base_url")
    },
  )
  it("warns when base_url cannot be reached through the declared egress", () => {
    expect(
      warnings(
        load("DRIVER.md", http("base_url: https://api.one.test/v1\nnetwork: { egress: [other.test] }"), "strict"),
      ),
    ).toEqual(["base-url-not-in-egress @ network.egress"])
    expect(
      warnings(
        load("DRIVER.md", http("base_url: https://api.one.test/v1\nnetwork: { egress: ['*.one.test'] }"), "strict"),
      ),
    ).toEqual([])
  })
  it("warns when an sdk driver installs another package (C-29)", () => {
    const front =
      "name: S\nid: s-one\ndescription: d\nversion: 1.0.0\nkind: sdk\npackage: '@parts/driver'\npackage_manager: pnpm\ninstall: [{ method: npm, package: parts@4 }]\nimplements: [{ tool: t.one, version: ^1.0.0, metadata: { sdk: { function_ref: default } } }]"
    expect(warnings(load("SDK.md", front, "strict"))).toEqual(["sdk-package-differs @ install[0].package"])
    expect(warnings(load("SDK.md", front.replace("'@parts/driver'", "parts"), "strict"))).toEqual([])
  })
  it.each(["function_ref: 'a.b()'", "function_ref: '__proto__[x]'", "function_ref: ''"])(
    "refuses a function reference that is no dotted name: %s",
    (ref) => {
      const front = `name: S\nid: s-one\ndescription: d\nversion: 1.0.0\nkind: sdk\npackage: p\npackage_manager: npm\nimplements: [{ tool: t.one, version: ^1.0.0, metadata: { sdk: { ${ref} } } }]`
      expect(errors(load("DRIVER.md", front))).toEqual(["bad-value @ implements[0].metadata.sdk.function_ref"])
    },
  )
  it("applies the schema of its kind after the universal one", () => {
    expect(errors(load("DRIVER.md", http("").replace("kind: http", "kind: carrier-pigeon")))).toEqual([
      "not-one-of @ kind",
    ])
    expect(errors(load("DRIVER.md", http("base_url: https://a.test").replace("kind: http", "kind: mcp")))).toContain(
      "missing-field @ server",
    )
  })
  it("finds a credential in an mcp server's environment", () => {
    const front =
      "name: M\nid: m-one\ndescription: d\nversion: 1.0.0\nkind: mcp\ntransport: stdio\nserver: { kind: docker, image: x, env: { DB_PASSWORD: hunter2 } }\nimplements: [{ tool: t.one, version: ^1.0.0, metadata: { mcp: { tool_name: q } } }]"
    expect(errors(load("DRIVER.md", front))).toEqual(["plaintext-credential @ server.env.DB_PASSWORD"])
  })

  it("cuts a version check that may take a day to what one may take, and says so", () => {
    const front = cliFront().replace('range: ">=1" }', 'range: ">=1", timeout_ms: 86400000 }')
    const result = load("DRIVER.md", front)
    expect(asDriver(result).versionCheck?.timeoutMs).toBe(limits.versionCheckMs)
    expect(warnings(result)).toEqual(["version-check-too-long @ version_check.timeout_ms"])
  })
})
