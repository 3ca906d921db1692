import pc from "picocolors"
import { describe, expect, test } from "vitest"
import { exitOf } from "../../src/cli/exit.ts"
import { envelopeLines, valueText } from "../../src/cli/render/envelope.ts"
import { table } from "../../src/cli/render/table.ts"
import { visible } from "../../src/cli/terminal.ts"
import { reasons } from "../../src/host/reasons.ts"
import type { CallError, Envelope, ReportedEffect } from "../../src/host/types.ts"

const plain = pc.createColors(false)
const base = { call: "01J", driver: "magpie@1", denied: [], receipt: "sha256:ab" }
const effect = (kind: ReportedEffect["kind"], path: string, declared: boolean): ReportedEffect => ({
  kind,
  path,
  declared,
  committed: false,
})
const error = (code: CallError["code"]): CallError => ({
  code,
  class: "tool",
  message: "it failed",
  retryable: false,
  hint: "do this",
  details: {},
})

describe("an envelope for people", () => {
  test("gives every deletion a line of its own", () => {
    const effects = Array.from({ length: 300 }, (_, index) => effect("delete", `old/${index}.txt`, true))
    const text = envelopeLines({ ok: true, value: null, effects, ...base }, plain).join("\n")
    for (const { path } of effects) expect(text).toContain(`D ${path}`)
  })

  test("marks what was not declared and what was not committed", () => {
    const text = envelopeLines(
      {
        ok: false,
        error: error("undeclared_write"),
        effects: [effect("create", ".bashrc", false), effect("modify", "notes/a", true)],
        ...base,
      },
      plain,
    ).join("\n")
    expect(text).toMatch(/A \.bashrc.*undeclared, not committed/)
    expect(text).toMatch(/M notes\/a.*declared, not committed/)
    expect(text).toContain("hint  do this")
    expect(text).toContain("receipt sha256:ab")
  })

  test("shows denials with layer, target, count and reason", () => {
    const envelope: Envelope = {
      ok: true,
      value: 1,
      effects: [],
      ...base,
      denied: [{ layer: "egress", reason: "not declared", target: "bad.test:443", count: 3 }],
    }
    expect(envelopeLines(envelope, plain).join("\n")).toContain("✗ egress bad.test:443 ×3  not declared")
  })

  test("lets no tool steer the terminal", () => {
    expect(valueText("a\u001b[2Jb")).toBe("a\\x1b[2Jb")
    const text = envelopeLines(
      { ok: true, value: 1, effects: [effect("create", "x\u001b]0;title\u0007", true)], ...base },
      plain,
    ).join("\n")
    expect(text).not.toContain("\u001b")
    expect(visible("a\u202eb\u009bc")).toBe("a\\x202eb\\x9bc")
    expect(visible("line\n\ttabbed")).toBe("line\n\ttabbed")
  })
})

describe("exit codes", () => {
  test.each(Object.entries(reasons))("%s ends with the exit code of the table", (code, reason) => {
    expect(exitOf({ ok: false, error: error(code as CallError["code"]), effects: [], ...base })).toBe(reason.exit)
  })

  test("a tool's own code is a failure of the tool", () => {
    expect(exitOf({ ok: false, error: error("jq:bad_filter"), effects: [], ...base })).toBe(1)
  })

  test("ok is 0", () => {
    expect(exitOf({ ok: true, value: null, effects: [], ...base })).toBe(0)
  })
})

test("a table wraps its last column and keeps the others aligned", () => {
  expect(table(["A", "TEXT"], [["one", "some words that are longer than the rest"]], 29)).toBe(
    ["A    TEXT", "one  some words that are", "     longer than the rest"].join("\n"),
  )
})
