import { describe, expect, it } from "vitest"
import type { SecretEntry } from "../../../src/manifest/types.ts"
import { asSecrets, errors, load } from "../from-text.ts"

const front = (extra: string): string => `secrets: [{ slug: a-key, name: A, description: d, ${extra} }]`
const entry = (extra: string): SecretEntry | undefined =>
  asSecrets(load("SECRETS.md", front(extra), "strict")).secrets[0]

describe("a secret's rules", () => {
  it("name who may have it", () => {
    expect(
      entry(
        'access: { reveal: [{ role: owner }, { userId: ana }], bind: [{ tool: t.one }, { workflow: w }], rotate: [{ cap: "cap://x" }] }',
      )?.access,
    ).toEqual({
      reveal: [
        { by: "role", name: "owner" },
        { by: "user", name: "ana" },
      ],
      bind: [
        { by: "tool", name: "t.one" },
        { by: "workflow", name: "w" },
      ],
      rotate: [{ by: "cap", name: "cap://x" }],
    })
  })
  it.each([
    ["P90D", 90 * 86_400_000],
    ["90d", 90 * 86_400_000],
    ["2y", 730 * 86_400_000],
    ["6m", 180 * 86_400_000],
    ["P1W", 7 * 86_400_000],
    ["12h", 12 * 3_600_000],
  ])("keep records for %s", (written, retentionMs) => {
    expect(entry(`audit: { retention: ${written}, pii: true, classification: [internal] }`)?.audit).toEqual({
      retentionMs,
      pii: true,
      classification: ["internal"],
    })
  })
  it("expose it as a variable, a file or a placeholder", () => {
    expect(
      entry(
        "exposures: [{ kind: env, name: A_KEY, field: accessToken }, { kind: file, path: ~/.netrc }, { kind: file, path: /run/key, mode: 0o400 }, { kind: egress-substitute, placeholderName: A_KEY, allowedByDefault: true, intendedProviders: [openai] }], metadata: { bindings: { env: [A_KEY, B_KEY] } }",
      ),
    ).toMatchObject({
      exposures: [
        { kind: "env", name: "A_KEY", field: "accessToken" },
        { kind: "file", path: "~/.netrc", mode: 0o600 },
        { kind: "file", path: "/run/key", mode: 0o400 },
        { kind: "egress-substitute", placeholderName: "A_KEY", allowedByDefault: true, intendedProviders: ["openai"] },
      ],
      env: ["A_KEY", "B_KEY"],
    })
  })
  it.each([
    [
      "a variable in small letters",
      "exposures: [{ kind: env, name: a_key }]",
      "bad-value @ secrets[0].exposures[0].name",
    ],
    [
      "a variable with an end of line",
      'exposures: [{ kind: env, name: "A\\nB" }]',
      "bad-value @ secrets[0].exposures[0].name",
    ],
    [
      "a placeholder without a name",
      "exposures: [{ kind: egress-substitute }]",
      "bad-value @ secrets[0].exposures[0].placeholderName",
    ],
    ["a file without a path", "exposures: [{ kind: file }]", "missing-field @ secrets[0].exposures[0].path"],
    [
      "a file that climbs out",
      "exposures: [{ kind: file, path: ~/../x }]",
      "path-escape @ secrets[0].exposures[0].path",
    ],
    [
      "a file that is relative",
      "exposures: [{ kind: file, path: key.pem }]",
      "path-escape @ secrets[0].exposures[0].path",
    ],
    [
      "a file with a NUL",
      'exposures: [{ kind: file, path: "/run/a\\0b" }]',
      "path-escape @ secrets[0].exposures[0].path",
    ],
    ["a folder for a file", "exposures: [{ kind: file, path: /run/ }]", "path-escape @ secrets[0].exposures[0].path"],
    [
      "a mode in decimal digits",
      "exposures: [{ kind: file, path: /k, mode: 600 }]",
      "out-of-range @ secrets[0].exposures[0].mode",
    ],
    [
      "a mode with the setuid bit",
      "exposures: [{ kind: file, path: /k, mode: 0o4700 }]",
      "out-of-range @ secrets[0].exposures[0].mode",
    ],
    ["an access rule for nobody", 'access: { bind: [{ role: "" }] }', "out-of-range @ secrets[0].access.bind[0].role"],
    [
      "a bound variable that is a number",
      "metadata: { bindings: { env: [7] } }",
      "bad-value @ secrets[0].metadata.bindings.env[0]",
    ],
  ])("are refused with %s", (_what, extra, expected) => {
    expect(errors(load("SECRETS.md", front(extra)))).toEqual([expected])
  })
})
