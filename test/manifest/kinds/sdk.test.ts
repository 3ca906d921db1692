import { describe, expect, it } from "vitest"
import type { Implementation, SdkSpec } from "../../../src/manifest/types.ts"
import { asDriver, errors, load } from "../from-text.ts"

const front = (fields: string, call = "function_ref: default"): string => `
name: S
id: s-one
description: d
version: 1.0.0
kind: sdk
auth: { state: { env: [KEY] } }
${fields}
implements: [{ tool: t.one, version: ^1.0.0, metadata: { sdk: { ${call} } } }]`
const npm = "package: parts\npackage_manager: npm"
const spec = (fields: string): SdkSpec => {
  const { body } = asDriver(load("SDK.md", front(fields), "strict"))
  if (body.kind !== "sdk") throw new Error("not sdk")
  return body.sdk
}
const entry = (call: string): Implementation | undefined =>
  asDriver(load("SDK.md", front(npm, call), "strict")).implements[0]

describe("an sdk driver", () => {
  it.each([
    [npm, { packageManager: "npm", package: "parts", importStyle: "esm" }],
    [
      'package: "@x/y@^2"\npackage_manager: pnpm',
      { packageManager: "pnpm", package: "@x/y", packageVersion: "^2", importStyle: "esm" },
    ],
    [
      "package: anthropic\npackage_manager: pip\npackage_version: '>=0.40,<1'",
      { packageManager: "pip", package: "anthropic", packageVersion: ">=0.40 <1", importStyle: "python" },
    ],
    [
      "package: host-sdxl\npackage_manager: local\nentrypoint: dist/index.js\nimport_style: cjs",
      { packageManager: "local", package: "host-sdxl", entrypoint: "dist/index.js", importStyle: "cjs" },
    ],
    [
      "package: serde\npackage_manager: cargo\nstreaming: { mode: callback }",
      { packageManager: "cargo", package: "serde", importStyle: "rust-crate", streaming: { mode: "callback" } },
    ],
  ])("is typed: %s", (fields, expected) => {
    expect(spec(fields)).toEqual(expected)
  })
  it("keeps what its client is made with as templates", () => {
    expect(spec(`${npm}\nclient_options: { apiKey: "\${secrets.KEY}", retries: 2 }`).clientOptions).toMatchObject({
      type: "object",
      entries: [
        {
          key: "apiKey",
          value: { type: "text", parts: [{ type: "value", path: { root: "secrets", keys: ["KEY"] } }] },
        },
        { key: "retries", value: { type: "plain", value: 2 } },
      ],
    })
  })
  it.each([
    ["function_ref: default", { functionRef: ["default"], arguments: { style: "input" }, extract: [] }],
    [
      'function_ref: Client.images.create, args_template: { prompt: "${input.q}", n: 1 }, result_extract: "$.data[*].url", streaming: { mode: async-iterator }',
      {
        functionRef: ["Client", "images", "create"],
        arguments: {
          style: "object",
          value: { type: "object", entries: [{ key: "prompt" }, { key: "n", value: { type: "plain", value: 1 } }] },
        },
        extract: [{ take: "property", name: "data" }, { take: "all" }, { take: "property", name: "url" }],
        streaming: { mode: "async-iterator" },
      },
    ],
    [
      'function_ref: f, args_template: { _1: 2, _0: "${input.q}" }',
      {
        functionRef: ["f"],
        arguments: { style: "positional", values: [{ type: "text" }, { type: "plain", value: 2 }] },
      },
    ],
  ])("calls %s", (written, expected) => {
    expect(entry(written)?.sdk).toMatchObject(expected)
  })
  const ref = "implements[0].metadata.sdk"
  it.each([
    [
      "a package that is an address",
      "package: https://evil.test/x.tgz\npackage_manager: npm",
      undefined,
      "sdk-package @ package",
    ],
    [
      "a package that is a repository",
      "package: someone/repo\npackage_manager: npm",
      undefined,
      "sdk-package @ package",
    ],
    ["a package that climbs", "package: a/../../b\npackage_manager: local", undefined, "sdk-package @ package"],
    [
      "a package that is an address of its own",
      "package: file:/etc\npackage_manager: local",
      undefined,
      "sdk-package @ package",
    ],
    ["a module that climbs", `${npm}\nentrypoint: ../../etc/x.js`, undefined, "path-escape @ entrypoint"],
    ["a module that is code", `${npm}\nentrypoint: "data:text/javascript,1"`, undefined, "path-escape @ entrypoint"],
    ["a module that climbs in code", `${npm}\nentrypoint: "a/%2e%2e/b"`, undefined, "path-escape @ entrypoint"],
    ["a loader of another language", `${npm}\nimport_style: python`, undefined, "sdk-import-style @ import_style"],
    [
      "a version that is none",
      `${npm}\npackage_version: newest-and-best`,
      undefined,
      "version-range @ package_version",
    ],
    [
      "a literal key for its client",
      `${npm}\nclient_options: { apiKey: hunter2 }`,
      undefined,
      "plaintext-credential @ client_options.apiKey",
    ],
    [
      "a value of one call in its client",
      `${npm}\nclient_options: { user: "\${input.user}" }`,
      undefined,
      "per-call-value @ client_options.user",
    ],
    ["a function of the prototype", npm, "function_ref: a.constructor.b", `bad-value @ ${ref}.function_ref`],
    ["a function of every object", npm, "function_ref: __proto__", `bad-value @ ${ref}.function_ref`],
    [
      "positions with a gap",
      npm,
      "function_ref: f, args_template: { _0: a, _2: b }",
      `sdk-arguments @ ${ref}.args_template`,
    ],
    [
      "positions beside names",
      npm,
      "function_ref: f, args_template: { _0: a, b: c }",
      `sdk-arguments @ ${ref}.args_template`,
    ],
    [
      "six positions",
      npm,
      "function_ref: f, args_template: { _0: a, _1: a, _2: a, _3: a, _4: a, _5: a }",
      `sdk-arguments @ ${ref}.args_template`,
    ],
    [
      "a template that is none",
      npm,
      'function_ref: f, args_template: { a: "${input.x" }',
      `template-syntax @ ${ref}.args_template.a`,
    ],
  ])("is refused with %s", (_what, fields, call, expected) => {
    const result = load("SDK.md", front(fields, call))
    expect(errors(result)).toEqual([expected])
    expect(JSON.stringify(result)).not.toContain("hunter2")
  })
})

describe("a builtin driver", () => {
  const builtin = (metadata: string): string =>
    `name: B\nid: b-one\ndescription: d\nversion: 1.0.0\nkind: builtin\nimplements: [{ tool: t.one, version: ^1.0.0${metadata} }]`
  it("names the host's function, or means the tool's own name", () => {
    const hostId = (metadata: string): string | undefined =>
      asDriver(load("DRIVER.md", builtin(metadata), "strict")).implements[0]?.builtin?.hostId
    expect(hostId("")).toBe("t.one")
    expect(hostId(", metadata: { builtin: { host_id: files.read } }")).toBe("files.read")
  })
  it("is refused with a name that is none", () => {
    expect(errors(load("DRIVER.md", builtin(', metadata: { builtin: { host_id: "a b" } }')))).toEqual([
      "bad-value @ implements[0].metadata.builtin.host_id",
    ])
  })
})
