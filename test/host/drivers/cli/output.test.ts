import { describe, expect, it } from "vitest"
import { exitMeaning } from "../../../../src/host/drivers/cli/exit-code.ts"
import { callErrorOf } from "../../../../src/host/failure.ts"
import { outputFormat, withJsonFlag } from "../../../../src/host/drivers/cli/format.ts"
import { errorTailBytes } from "../../../../src/host/invoke/limits.ts"
import { interpretOutput } from "../../../../src/host/drivers/cli/output.ts"
import type {
  CliOutput,
  DriverContract,
  Implementation,
  JsonSchema,
  JsonValue,
  OutputFormat,
} from "../../../../src/manifest/types.ts"
import type { Captured } from "../../../../src/sandbox/backend.ts"
import { cliDriverOf } from "../../resolver/contracts.ts"

const captured = (text: string | Uint8Array, total?: number): Captured => {
  const bytes = typeof text === "string" ? new TextEncoder().encode(text) : text
  return { bytes, truncated: total !== undefined, total: total ?? bytes.length }
}
const base: CliOutput = {
  defaultFormat: "text",
  jsonFlagArgs: [],
  exitCodes: {},
  stream: "stdout",
  errorStream: "stderr",
}
const driverWith = (output: Partial<CliOutput> = {}, over: Partial<DriverContract> = {}): DriverContract => {
  const driver = cliDriverOf("gh", over)
  const { body } = driver
  if (body.kind !== "cli") return driver
  return { ...driver, body: { kind: "cli", cli: { ...body.cli, output: { ...base, ...output } } } }
}
const anyObject: JsonSchema = { type: "object" }
const anyText: JsonSchema = { type: "string" }

interface Run {
  readonly format?: OutputFormat
  readonly outputs?: JsonSchema
  readonly output?: Partial<CliOutput>
  readonly exit?: number
  readonly stdout?: Captured
  readonly stderr?: Captured
  readonly drop?: readonly string[]
}
const run = ({
  format = "text",
  outputs = anyText,
  output = {},
  exit = 0,
  stdout = captured("out\n"),
  stderr = captured("err\n"),
  drop = [],
}: Run) =>
  interpretOutput(
    { tool: { outputs }, driver: driverWith(output), implementation: { dropOutputs: drop }, format },
    { exitCode: exit, stdout, stderr },
  )

describe("the format", () => {
  const cli = (outputFormatName?: OutputFormat): Implementation["cli"] => ({
    argv: [],
    ...(outputFormatName === undefined ? {} : { outputFormat: outputFormatName }),
  })
  // biome-ignore format: a table reads by rows
  it.each<[string, Partial<CliOutput>, Implementation["cli"], JsonSchema, OutputFormat]>([
    ["is text by default", {}, cli(), anyObject, "text"],
    ["is JSON when the contract promises an object and there is a flag", { jsonFlag: "--json" }, cli(), anyObject, "json"],
    ["is text when the contract promises a text", { jsonFlag: "--json" }, cli(), anyText, "text"],
    ["is the entry's, against an object", { jsonFlag: "--json" }, cli("text"), anyObject, "text"],
    ["is the entry's, for JSON", {}, cli("json"), anyText, "json"],
    ["is the driver's default", { defaultFormat: "yaml", jsonFlag: "--json" }, cli(), anyObject, "yaml"],
    ["is the entry's before the driver's default", { defaultFormat: "json" }, cli("binary"), anyObject, "binary"],
    ["does without an entry", { defaultFormat: "json" }, undefined, anyObject, "json"],
  ])("%s", (_, output, entry, outputs, format) => {
    expect(outputFormat({ ...base, ...output }, entry, outputs)).toBe(format)
  })
})

describe("the JSON flag", () => {
  const gh = { ...base, jsonFlag: "--json", jsonFlagArgs: ["number,title"] }
  const none = Number.POSITIVE_INFINITY
  // biome-ignore format: a table reads by rows
  it.each<[string, readonly string[], CliOutput, OutputFormat, number, readonly string[]]>([
    ["is appended with its arguments", ["pr", "list"], gh, "json", none, ["pr", "list", "--json", "number,title"]],
    ["is not appended for text", ["pr"], gh, "text", none, ["pr"]],
    ["is not appended where there is none", ["pr"], base, "json", none, ["pr"]],
    ["goes before a literal --", ["find", "--", "-x"], gh, "json", 2, ["find", "--json", "number,title", "--", "-x"]],
    ["is not given twice", ["pr", "--json", "a"], gh, "json", none, ["pr", "--json", "a"]],
    ["is not given twice with =", ["pr", "--json=a"], gh, "json", none, ["pr", "--json=a"]],
    ["is given when it only stands behind --", ["find", "--", "--json"], gh, "json", 2, ["find", "--json", "number,title", "--", "--json"]],
  ])("%s", (_, argv, output, format, positionalFrom, expected) => {
    expect(withJsonFlag(argv, output, format, positionalFrom)).toEqual(expected)
  })
})

describe("exit codes", () => {
  const withLogin: Partial<DriverContract> = { auth: { state: { paths: [], env: [] } } }
  // biome-ignore format: a table reads by rows
  it.each<[string, number, Record<string, string>, Partial<DriverContract>, string]>([
    ["takes 0 for success", 0, {}, {}, "ok"],
    ["takes 1 for a failure of the tool", 1, {}, {}, "upstream_error (error)"],
    ["takes 2 for a usage error", 2, {}, {}, "upstream_error (usage_error)"],
    ["takes 4 for a missing login where there is a login", 4, {}, withLogin, "auth_required (auth_required)"],
    ["takes 4 for a failure where there is none", 4, {}, {}, "upstream_error (error)"],
    ["takes 124 for a timeout", 124, {}, {}, "timeout (timeout)"],
    ["takes 137 for a kill", 137, {}, {}, "upstream_error (killed)"],
    ["takes any other for a failure", 77, {}, {}, "upstream_error (error)"],
    ["takes a mapped ok for success", 1, { 1: "ok" }, {}, "ok"],
    ["takes a mapped error at 0 for a failure", 0, { 0: "error" }, {}, "upstream_error (error)"],
    ["takes a known code that a tool may claim", 7, { 7: "rate_limited" }, {}, "rate_limited (rate_limited)"],
    ["makes any other word the driver's own code", 7, { 7: "card_declined" }, {}, "gh:card_declined (card_declined)"],
    ["does not let a program claim a violation", 7, { 7: "undeclared_write" }, {}, "gh:undeclared_write (undeclared_write)"],
    ["does not let a program claim a fault of the host", 7, { 7: "internal" }, {}, "gh:internal (internal)"],
    ["does not let a program claim an approval", 7, { 7: "approval_required" }, {}, "gh:approval_required (approval_required)"],
    ["does not read inherited names", 5, Object.create({ 5: "ok" }) as Record<string, string>, {}, "upstream_error (error)"],
  ])("%s", (_, code, exitCodes, over, expected) => {
    const meaning = exitMeaning(driverWith({ exitCodes }, over), code)
    expect(meaning.ok ? "ok" : `${meaning.code} (${meaning.word})`).toBe(expected)
  })

  it("reports exit code and the end of the error stream", () => {
    expect(run({ exit: 3 })).toEqual({
      ok: false,
      code: "upstream_error",
      message: "`gh` exited with 3",
      details: { exit_code: 3, meaning: "error", stderr: "err\n" },
    })
  })

  it("takes the error stream that the driver names", () => {
    expect(run({ exit: 3, output: { errorStream: "stdout" } })).toMatchObject({ details: { stderr: "out\n" } })
    expect(run({ exit: 3, output: { errorStream: "mixed" } })).toMatchObject({ details: { stderr: "out\nerr\n" } })
  })

  it("keeps a bounded tail from a whole character on", () => {
    const result = run({ exit: 1, stderr: captured(`a${"ä".repeat(errorTailBytes)}`) })
    const stderr = !result.ok && result.details["stderr"]
    expect(stderr).toMatch(/^\[caisson: the first \d+ bytes are left out\]\nä+$/)
    expect(String(stderr).length).toBeLessThan(errorTailBytes)
  })

  it("says that the error stream itself was cut", () => {
    expect(run({ exit: 1, stderr: captured("x", 99) })).toMatchObject({
      details: { stderr: "x\n[caisson: output cut: 1 of 99 bytes kept (limit: output)]" },
    })
  })
})

describe("values", () => {
  const textProperty: JsonSchema = { type: "object", properties: { text: { type: "string" } } }
  const everything: JsonSchema = {
    type: "object",
    properties: { stdout: { type: "string" }, stderr: { type: "string" }, exit_code: { type: "integer" } },
  }
  // biome-ignore format: a table reads by rows
  it.each<[string, Run, JsonValue]>([
    ["text is verbatim", { stdout: captured("\uFEFF a\r\n") }, "\uFEFF a\r\n"],
    ["text of stderr", { output: { stream: "stderr" } }, "err\n"],
    ["text of both", { output: { stream: "mixed" } }, "out\nerr\n"],
    ["text goes to `text`", { outputs: textProperty }, { text: "out\n" }],
    ["text goes to `stdout`, with what else the contract has", { outputs: everything, exit: 1, output: { exitCodes: { 1: "ok" } } }, { stdout: "out\n", stderr: "err\n", exit_code: 1 }],
    ["text for another object stays text, for the contract to judge", { outputs: anyObject }, "out\n"],
    ["a `text` that is no string is not filled", { outputs: { type: "object", properties: { text: { type: "array" } } } }, "out\n"],
    ["JSON", { format: "json", stdout: captured('\uFEFF{"a":[1,null,"x"]}\n') }, { a: [1, null, "x"] }],
    ["YAML", { format: "yaml", stdout: captured("a: [1, ~, 'x']\nb: 2026-01-01\n") }, { a: [1, null, "x"], b: "2026-01-01" }],
    ["YAML with an anchor", { format: "yaml", stdout: captured("a: &x [1]\nb: *x\n") }, { a: [1], b: [1] }],
    ["bytes", { format: "binary", outputs: anyObject, stdout: captured(new Uint8Array([0, 255])) }, { base64: "AP8=", bytes: 2 }],
    ["bytes for a text", { format: "binary", stdout: captured(new Uint8Array([0, 255])) }, "AP8="],
    ["without dropped outputs", { format: "json", outputs: anyObject, stdout: captured('{"a":1,"b":2}'), drop: ["b", "c"] }, { a: 1 }],
  ])("gives %s", (_, each, value) => {
    expect(run(each)).toMatchObject({ ok: true, value })
    const made = run(each)
    expect(made.ok && made.value).toEqual(value)
  })

  it("notes which outputs were dropped", () => {
    expect(run({ format: "json", stdout: captured('{"b":2}'), drop: ["b", "c"] })).toMatchObject({
      ok: true,
      notes: ["dropped by the driver: b"],
    })
  })

  it("keeps a key named __proto__ as data", () => {
    const made = run({ format: "json", stdout: captured('{"__proto__":{"x":1},"b":1}'), drop: ["b"] })
    expect(made.ok && JSON.stringify(made.value)).toBe('{"__proto__":{"x":1}}')
    expect(({} as Record<string, unknown>)["x"]).toBeUndefined()
  })

  // biome-ignore format: a table reads by rows
  it.each<[string, Run]>([
    ["empty JSON", { format: "json", stdout: captured("\n") }],
    ["broken JSON", { format: "json", stdout: captured('{"a":') }],
    ["two JSON values", { format: "json", stdout: captured("{}\n{}") }],
    ["JSON that is not UTF-8", { format: "json", stdout: captured(new Uint8Array([0x22, 0xff, 0x22])) }],
    ["JSON nested beyond the limit", { format: "json", stdout: captured(`${"[".repeat(100_000)}${"]".repeat(100_000)}`) }],
    ["empty YAML", { format: "yaml", stdout: captured("") }],
    ["broken YAML", { format: "yaml", stdout: captured("a: [") }],
    ["two YAML documents", { format: "yaml", stdout: captured("a: 1\n---\nb: 2\n") }],
    ["a YAML number that JSON lacks", { format: "yaml", stdout: captured("a: .nan\n") }],
    ["a YAML alias bomb", { format: "yaml", stdout: captured(`a: &a [x,x,x,x,x,x,x,x,x,x]\n${"bcdefghi".split("").map((key, i) => `${key}: &${key} [${Array.from({ length: 10 }, () => `*${"abcdefgh"[i]}`).join(",")}]\n`).join("")}`) }],
    ["a YAML tag", { format: "yaml", stdout: captured("a: !!js/function 'x'\nb: [") }],
  ])("cannot parse %s", (_, each) => {
    expect(run(each)).toMatchObject({ ok: false, code: "output_parse_failed", details: { format: each.format, exit_code: 0, stderr: "err\n" } })
  })

  it.each(['{"token": s3cr3t}', `{"a": "${"x".repeat(99)}", "token": s3cr3t, "b": "${"x".repeat(99)}"}`])(
    "does not repeat the output in the message of a parse failure",
    (text) => {
      expect(JSON.stringify(run({ format: "json", stdout: captured(text) }))).not.toContain("s3cr3t")
    },
  )
})

describe("output over the limit", () => {
  it("ends text in a note that names the limit", () => {
    expect(run({ stdout: captured("abc", 10), stderr: captured("") })).toEqual({
      ok: true,
      value: "abc\n[caisson: output cut: 3 of 10 bytes kept (limit: output)]",
      notes: ["output cut: 3 of 10 bytes kept (limit: output)"],
    })
  })

  it("leaves out a character that the cap cut in two", () => {
    const made = run({ stdout: captured(new Uint8Array([0x61, 0xc3]), 10) })
    expect(made.ok && made.value).toMatch(/^a\n\[caisson/)
  })

  it.each<OutputFormat>(["json", "yaml", "binary"])("refuses half a %s value", (format) => {
    expect(run({ format, stdout: captured("{}", 10) })).toMatchObject({
      ok: false,
      code: "limit_exceeded",
      details: { limit: "output", kept: 2, total: 10 },
    })
  })

  it("notes text that is not UTF-8", () => {
    expect(run({ stdout: captured(new Uint8Array([0x61, 0xff])) })).toMatchObject({
      ok: true,
      value: "a\ufffd",
      notes: [expect.stringContaining("UTF-8")],
    })
  })
})

describe("the envelope's error", () => {
  it("takes class, hint and retryable from the table", () => {
    expect(callErrorOf({ ok: false, code: "rate_limited", message: "m", details: {} })).toMatchObject({
      class: "denied",
      retryable: true,
      hint: "wait and try again",
    })
  })
  it("gives a tool's own code the class tool", () => {
    expect(callErrorOf({ ok: false, code: "gh:card_declined", message: "m", details: {} })).toMatchObject({
      class: "tool",
      retryable: false,
    })
  })
})

describe("what a program that succeeded said beside its value", () => {
  const withStderr: JsonSchema = {
    type: "object",
    properties: { text: { type: "string" }, stderr: { type: "string" } },
  }
  // biome-ignore format: a table reads by rows
  it.each<[string, Run, string | undefined]>([
    ["is told", {}, "err\n"],
    ["is nothing where it said nothing", { stderr: captured("\n") }, undefined],
    ["is not told twice where it is the value", { output: { stream: "stderr" } }, undefined],
    ["is not told twice where it is in the value", { output: { stream: "mixed" } }, undefined],
    ["is not told twice where the contract has a place for it", { outputs: withStderr }, undefined],
  ])("%s", (_, given, stderr) => {
    const read = run(given)
    expect(read.ok).toBe(true)
    expect(read.ok ? read.stderr : "").toBe(stderr)
  })
  it("is cut to its end", () => {
    const read = run({ stderr: captured(`${"a".repeat(10_000)}\nlast words\n`) })
    const said = read.ok ? (read.stderr ?? "") : ""
    expect(said).toMatch(/^\[caisson: the first \d+ bytes are left out\]\n/)
    expect(said).toMatch(/last words\n$/)
    expect(said.length).toBeLessThan(4_200)
  })
})
