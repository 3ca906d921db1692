import pc from "picocolors"
import { describe, expect, test } from "vitest"
import { exitOf } from "../../src/cli/exit.ts"
import { envelopeLines, questionLines, valueText } from "../../src/cli/render/envelope.ts"
import { profileRows } from "../../src/cli/render/profile.ts"
import { table } from "../../src/cli/render/table.ts"
import { wrapLine } from "../../src/cli/wrap.ts"
import { inline, nameText, ownLine, safeJson, visible } from "../../src/cli/visible.ts"
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

describe("a profile for people", () => {
  test("of a call that runs no program says so, and nothing of what a program would have around it", () => {
    const profile = {
      view: { read: [], deny: [] },
      write: [],
      env: {},
      tty: false,
      network: { proxyPort: 3128, transparentPorts: [443], dns: true },
      limits: { wallMs: 1000, memoryBytes: 1, pids: 1, diskBytes: 1, outputBytes: 1_048_576, openFiles: 1 },
      required: ["wallMs"],
      files: {},
    } as const
    const report = { tool: "t", rows: [], argv: ["GET", "https://api.test/x"], egress: ["api.test:443"] }
    expect(Object.fromEntries(profileRows(report, profile))).toEqual({
      command: "GET https://api.test/x",
      mutates: "nothing",
      approval: "unknown",
      program: "none: the host itself acts, without a sandbox",
      network: "api.test:443, through the call's own proxy",
      reads: "nothing of the workspace",
      hidden: "nothing",
      writes: "nothing of the workspace",
      limits: "1 s wall clock (must hold), 1 MiB of each output stream",
    })
  })
})

test("files of a contract are shown with their places", () => {
  const exchange = {
    inputs: [{ name: "a", path: "in/a\u001b[2J", writable: false }],
    outputs: [{ name: "b", path: "out/b" }],
  }
  const profile = {
    view: { read: [], deny: [] },
    write: [],
    env: {},
    tty: false,
    network: "none",
    limits: { wallMs: 1, memoryBytes: 1, pids: 1, diskBytes: 1, outputBytes: 1, openFiles: 1 },
    required: [],
    files: {},
    exchange,
  } as const
  const rows = Object.fromEntries(profileRows({ tool: "t", rows: [] }, profile))
  expect(rows["files in"]).toMatch(/^a from in\/a.*, read-only$/)
  expect(rows["files in"]).not.toContain("\u001b")
  expect(rows["files out"]).toBe("b to out/b")
})

describe("an envelope for people", () => {
  test("shows what an exception or a service said, which its hint refers to, as words of another's", () => {
    const named = { hint: "read `details.body` and `details.absent`", details: { body: { why: "no\u001b[2J room" } } }
    const service: Envelope = { ok: false, error: { ...error("upstream_error"), ...named }, effects: [], ...base }
    const told = envelopeLines(service, plain).join("\n")
    expect(told).toContain('"why"')
    expect(told).not.toContain("\u001b")
    const details = { exception: "SignedOut", message: "no login\u001b[2J\nfor ada" }
    const failed: Envelope = { ok: false, error: { ...error("upstream_error"), details }, effects: [], ...base }
    const lines = envelopeLines(failed, plain)
    expect(lines).toEqual(expect.arrayContaining([expect.stringMatching(/^ {2}\| no login\S+$/), "  | for ada"]))
    expect(lines.join("")).not.toContain("\u001b")
  })
  test("gives every deletion a line of its own", () => {
    const effects = Array.from({ length: 300 }, (_, index) => effect("delete", `old/${index}.txt`, true))
    const text = envelopeLines({ ok: true, value: null, effects, ...base }, plain).join("\n")
    for (const { path } of effects) expect(text).toContain(`D ${path}`)
  })

  test.each<[string, Partial<ReportedEffect> & Pick<ReportedEffect, "kind">, string]>([
    ["a program that was made", { kind: "create", mode: { after: 0o755 }, size: 3 }, "(3 bytes, mode 0755)"],
    ["a file that everybody may write", { kind: "create", mode: { after: 0o666 }, size: 3 }, "(3 bytes, mode 0666)"],
    ["a folder that everybody may write", { kind: "mkdir", mode: { after: 0o777 } }, "(folder, mode 0777)"],
    [
      "a file that became a program",
      { kind: "modify", mode: { before: 0o644, after: 0o755 }, size: 3 },
      "(3 bytes, mode 0644 → 0755)",
    ],
    ["where a link leads", { kind: "symlink", target: "../other place" }, "(link to ../other place)"],
    ["which file a hard link shares", { kind: "hardlink", from: "notes/a" }, "(the same file as notes/a)"],
    ["no more than the size of an ordinary file", { kind: "create", mode: { after: 0o644 }, size: 3 }, "(3 bytes)"],
    ["no more of an ordinary folder", { kind: "mkdir", mode: { after: 0o755 } }, "(folder)"],
  ])("tells, and a question tells with it: %s", (_what, facts, told) => {
    const effects = [{ ...effect(facts.kind, "x", true), ...facts }]
    expect(envelopeLines({ ok: true, value: null, effects, ...base }, plain).join("\n")).toContain(
      `x ${told}  declared`,
    )
    const question = {
      call: "01J",
      tool: "t",
      about: "effects",
      approval: "on-mutate",
      message: "",
      mutates: [],
    } as const
    const lines = questionLines({ ...question, effects, denied: [], changes: [], signal: AbortSignal.abort() }, plain)
    expect(lines.join("\n")).toContain(`x ${told}  declared`)
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
      denied: [
        {
          layer: "egress",
          reason: "not declared",
          target: "bad.test:443",
          count: 3,
          message: "stopped",
          hint: "add it",
        },
      ],
    }
    const text = envelopeLines(envelope, plain).join("\n")
    expect(text).toContain("✗ egress bad.test:443 ×3  not declared")
    expect(text).toMatch(/^ {4}stopped\n {4}hint add it$/m)
  })

  test("shows what a tool that succeeded said on its way, as it shows it of one that failed", () => {
    const ok: Envelope = { ok: true, value: 1, effects: [], ...base, stderr: "warning: old\u001b[2J\nsecond\n" }
    expect(envelopeLines(ok, plain).slice(0, 2)).toEqual(["  | warning: old\\x1b[2J", "  | second"])
    const failed: Envelope = {
      ok: false,
      error: { ...error("timeout"), details: { stderr: "x\n" } },
      effects: [],
      ...base,
    }
    expect(envelopeLines(failed, plain)[1]).toBe("  | x")
  })

  test("lets no tool steer the terminal", () => {
    expect(valueText("a\u001b[2Jb")).toBe("a\\x1b[2Jb")
    const text = envelopeLines(
      { ok: true, value: 1, effects: [effect("create", "x\u001b]0;title\u0007", true)], ...base },
      plain,
    ).join("\n")
    expect(text).not.toContain("\u001b")
    expect(visible("a\u202eb\u009bc", true)).toBe("a\\u{202e}b\\x9bc")
    expect(visible("line\n\ttabbed")).toBe("line\n\ttabbed")
  })
})

describe("text that is not ours", () => {
  const forged = "notes.txt\n  A safe.txt  declared"

  test("a newline in a file name begins no line of ours", () => {
    const lines = envelopeLines({ ok: true, value: 1, effects: [effect("create", forged, false)], ...base }, plain)
    expect(lines.filter((line) => /^ {2}A safe\.txt/.test(line))).toEqual([])
    expect(lines.every((line) => !line.includes("\n"))).toBe(true)
  })

  test.each([
    [
      "the target of a denial",
      { denied: [{ layer: "egress", reason: "no", target: forged, count: 1, message: forged, hint: forged }] },
    ],
    ["a note", { notes: [forged] }],
  ] as const)("%s stays on its line", (_, more) => {
    const lines = envelopeLines({ ok: true, value: 1, effects: [], ...base, ...more } as Envelope, plain)
    expect(lines.every((line) => !line.includes("\n"))).toBe(true)
  })

  test("a name that ends in our own words is quoted", () => {
    expect(nameText("a.txt  declared")).toBe('"a.txt  declared"')
    expect(nameText('a "b".txt')).toBe('"a \\"b\\".txt"')
    expect(nameText("with one space.txt")).toBe("with one space.txt")
  })

  test.each([..."\u0085\u009b\u00ad\u061c\u200e\u200f\u202e\u2028\u2029\u2066\ufeff\u{e0041}\u007f\u001b"])(
    "neither text nor JSON lets %j through, and JSON keeps its value",
    (char) => {
      expect(visible(`a${char}b`, true)).not.toContain(char)
      expect(inline(`a${char}b`, true)).not.toContain(char)
      const json = safeJson({ [`k${char}`]: `a${char}b` }, 2, true)
      expect(json).not.toContain(char)
      expect(JSON.parse(json)).toEqual({ [`k${char}`]: `a${char}b` })
    },
  )

  test("an unpaired surrogate is shown and keeps its value as JSON", () => {
    expect(visible("a\ud800b", true)).toBe("a\\u{d800}b")
    expect(JSON.parse(safeJson("a\ud800b", 0, true))).toBe("a\ud800b")
  })

  test("without a UTF-8 locale everything is ASCII, and JSON keeps its value", () => {
    const text = "é → 😀"
    expect(visible(text, false)).toBe("\\xe9 \\u{2192} \\u{1f600}")
    expect(safeJson(text, 0, false)).toMatch(/^[ -~]*$/)
    expect(JSON.parse(safeJson(text, 0, false))).toBe(text)
    expect(ownLine("✗ a ×3 · b → c…", false)).toBe("x a x3 - b -> c...")
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

test.each([40, 60, 80])("no line of a table is longer than %i columns", (width) => {
  const rows = [
    ["image.convert", "1.0.0", "writes", "imagemagick@1 graphics@2", "available  Convert an image to another format"],
    ["x".repeat(30), "1.0.0", "reads", "y", "z".repeat(150)],
  ]
  const text = table(["TOOL", "VERSION", "KIND", "DRIVERS", "STATE"], rows, width)
  expect(Math.max(...text.split("\n").map((line) => line.length))).toBeLessThanOrEqual(width)
  for (const cell of ["image.convert", "imagemagick@1", "another"]) expect(text).toContain(cell)
})

const hosts = "example.com www.example.com api.example.com raw.example-content.com"
const drivers = [
  ["imagemagick@1", "cli", "none", "available (6.9.11)"],
  ["curl@1", "cli", hosts, "available (7.88.1)"],
]

test("a column of many words wraps before a table gives up its columns", () => {
  expect(table(["DRIVER", "KIND", "EGRESS", "STATE"], drivers, 80).split("\n")).toEqual([
    `${"DRIVER         KIND  EGRESS".padEnd(62)}STATE`,
    `${"imagemagick@1  cli   none".padEnd(62)}available (6.9.11)`,
    `${"curl@1         cli   example.com www.example.com".padEnd(62)}available (7.88.1)`,
    "                     api.example.com raw.example-content.com",
  ])
})

test("a table without room for columns keeps its headings, and shows what belongs to a row", () => {
  expect(table(["DRIVER", "KIND", "EGRESS", "STATE"], drivers, 48).split("\n")).toEqual([
    "DRIVER KIND EGRESS",
    "    STATE",
    "imagemagick@1 cli none",
    "    available (6.9.11)",
    "curl@1 cli example.com www.example.com",
    "  api.example.com raw.example-content.com",
    "    available (7.88.1)",
  ])
})

describe("a line at a narrow terminal", () => {
  test.each([
    ["hint  do this and that", 40, "hint  do this and that"],
    ["hint  pass a JSON object or a file", 20, "hint  pass a JSON\n  object or a file"],
    ["    hint  pass a JSON object", 20, "    hint  pass a\n      JSON object"],
    ["receipt sha256:0123456789abcdef", 12, "receipt\n  sha256:0123456789abcdef"],
    ["\u001b[31mnot_found\u001b[39m  there is none", 22, "\u001b[31mnot_found\u001b[39m  there is\n  none"],
    ["        deep", 6, "        deep"],
  ])("%j at %i columns", (line, width, shown) => {
    expect(wrapLine(line, width)).toBe(shown)
  })
})
