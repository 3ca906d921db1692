import fc from "fast-check"
import type { TemplateScope } from "../../../../src/host/invoke/template-scope.ts"
import { describe, expect, it } from "vitest"
import { maxArgumentBytes, maxArgvBytes, maxArgvElements } from "../../../../src/host/invoke/limits.ts"
import {
  type ArgvProgram,
  compileArgv,
  compileStdin,
  expandArgv,
  expandStdin,
} from "../../../../src/host/drivers/cli/template.ts"
import type { JsonObject, JsonSchema } from "../../../../src/manifest/types.ts"

const inputs: JsonSchema = {
  type: "object",
  additionalProperties: false,
  required: ["text", "n", "method", "list", "object", "on"],
  $defs: { level: { enum: ["low", "high"] } },
  properties: {
    text: { type: "string" },
    n: { type: "number" },
    on: { type: "boolean" },
    method: { enum: ["merge", "squash", "-weird"] },
    one: { const: "-only" },
    list: { type: "array", items: { type: "string" } },
    numbers: { type: "array", items: { type: "integer" } },
    object: { type: "object", properties: { deep: { type: "string" } }, required: ["deep"] },
    maybe: { type: "string" },
    preset: { type: "string", default: "std" },
    loud: { type: "boolean", default: true },
    level: { $ref: "#/$defs/level" },
    mixed: { type: ["string", "array"] },
  },
}
const scope: TemplateScope = { inputs, mapping: {} }
const place = { file: "/d/DRIVER.md", path: "implements[0].metadata.cli.argv" }
const compile = (templates: readonly string[], over: Partial<TemplateScope> = {}): ArgvProgram => {
  const compiled = compileArgv(templates, { ...scope, ...over }, place)
  if (!compiled.ok) throw new Error(JSON.stringify(compiled.diagnostics))
  return compiled.program
}
const rules = (templates: readonly string[], over: Partial<TemplateScope> = {}): readonly string[] =>
  compileArgv(templates, { ...scope, ...over }, place).diagnostics.map((each) => `${each.severity}:${each.rule}`)
const expand = (templates: readonly string[], input: JsonObject, context: JsonObject = {}) =>
  expandArgv(compile(templates), { input, context })
const argvOf = (
  templates: readonly string[],
  input: JsonObject,
  context: JsonObject = {},
): readonly string[] | string => {
  const made = expand(templates, input, context)
  return made.ok ? made.argv : `${made.code}: ${made.message}`
}

describe("expansion", () => {
  // biome-ignore format: a table reads by rows
  it.each<[string, readonly string[], JsonObject, readonly string[]]>([
    ["keeps literals as they are", ["pr", "--json", "a b", "$x", "$(id)", ""], {}, ["pr", "--json", "a b", "$x", "$(id)", ""]],
    ["puts a value into one argument whatever it contains", ["${input.text}"], { text: "a b; rm -rf $HOME `id` \"'\n|" }, ["a b; rm -rf $HOME `id` \"'\n|"]],
    ["does not read a value as a template", ["${input.text}"], { text: "${input.n}" }, ["${input.n}"]],
    ["keeps an empty value as an empty argument", ["${input.text}"], { text: "" }, [""]],
    ["joins literals and values", ["--x=${input.text}:${input.n}"], { text: "a", n: 2 }, ["--x=a:2"]],
    ["writes numbers and booleans", ["${input.n}", "${input.on}"], { n: -1.5, on: false }, ["-1.5", "false"]],
    ["reads dotted paths and list items", ["${input.object.deep}", "${input.list.1}"], { object: { deep: "d" }, list: ["a", "b"] }, ["d", "b"]],
    ["uses the default for absent and null", ["${input.maybe | default('x y')}", "${input.text|default(\"it's\")}"], { text: null }, ["x y", "it's"]],
    ["does not use the default for an empty text", ["${input.maybe | default('x')}"], { maybe: "" }, [""]],
    ["lets the author's default start with a dash", ["${input.maybe | default('-')}"], {}, ["-"]],
    ["uses the contract's default", ["${input.preset}"], {}, ["std"]],
    ["writes JSON", ["${input.object | json}"], { object: { deep: "ä\"" } }, ['{"deep":"ä\\""}']],
    ["gives option and value when present", ["${input.maybe | optional('--f', input.maybe)}"], { maybe: "v" }, ["--f", "v"]],
    ["gives nothing when absent", ["${input.maybe | optional('--f', input.maybe)}"], {}, []],
    ["takes the value itself without a second argument", ["${input.maybe | optional('--f')}"], { maybe: "v" }, ["--f", "v"]],
    ["joins an option that ends in =", ["${input.maybe | optional('--f=', input.maybe)}"], { maybe: "-v" }, ["--f=-v"]],
    ["uses one input as the condition of another", ["${input.on | optional('--f', input.text)}"], { on: true, text: "v" }, ["--f", "v"]],
    ["gives a flag when true", ["${input.on | flag('--draft')}"], { on: true }, ["--draft"]],
    ["gives no flag when false", ["${input.on | flag('--draft')}"], { on: false }, []],
    ["takes the contract's default for a flag", ["${input.loud | flag('--loud')}"], {}, ["--loud"]],
    ["lets a value beat the contract's default for a flag", ["${input.loud | flag('--loud')}"], { loud: false }, []],
    ["gives one argument an item", ["${input.list | each}"], { list: ["a b", "c"] }, ["a b", "c"]],
    ["gives none for an empty list", ["x", "${input.list | each}"], { list: [] }, ["x"]],
    ["gives an option an item", ["${input.list | each('--glob')}"], { list: ["a", "b"] }, ["--glob", "a", "--glob", "b"]],
    ["joins an option an item", ["${input.list | each('--glob=')}"], { list: ["-a", "b"] }, ["--glob=-a", "--glob=b"]],
    ["composes an option from an enum", ["--${input.method}"], { method: "squash" }, ["--squash"]],
    ["composes an option from a number", ["-${input.n}"], { n: 9 }, ["-9"]],
    ["composes an option from an enum behind a local $ref", ["--${input.level}"], { level: "low" }, ["--low"]],
    ["lets an enum's value start with a dash", ["${input.method}"], { method: "-weird" }, ["-weird"]],
    ["lets anything follow a literal --", ["--", "${input.text}", "${input.list | each}"], { text: "-rf", list: ["--x"] }, ["--", "-rf", "--x"]],
  ])("%s", (_, templates, input, argv) => {
    expect(argvOf(templates, input)).toEqual(argv)
  })

  it("reads the context", () => {
    expect(argvOf(["${context.tenant}"], {}, { tenant: "t1" })).toEqual(["t1"])
  })

  it("reads driver-side names after a mapping", () => {
    const program = compile(["--${input.how}", "${input.body}"], {
      mapping: { how: { from: "method" }, body: { from: "text", transform: "trim" } },
    })
    expect(expandArgv(program, { input: { how: "merge", body: "b" }, context: {} })).toEqual({
      ok: true,
      argv: ["--merge", "b"],
    })
  })

  it("does not read inherited properties", () => {
    expect(
      expandArgv(compile(["${input.x}"], { inputs: {} }), {
        input: Object.create({ x: "inherited" }) as JsonObject,
        context: {},
      }),
    ).toMatchObject({ ok: false, code: "input_invalid" })
  })
})

describe("refusals of a call", () => {
  // biome-ignore format: a table reads by rows
  it.each<[string, readonly string[], JsonObject, RegExp]>([
    ["a value that starts with a dash", ["${input.text}"], { text: "--output=/etc/x" }, /`input.text` starts with `-`/],
    ["a single dash", ["${input.text}"], { text: "-" }, /starts with `-`/],
    ["two dashes, which would end the options", ["${input.text}"], { text: "--" }, /starts with `-`/],
    ["a dash behind a value that is empty", ["${input.preset}${input.text}"], { preset: "", text: "-x" }, /`input.text` starts with `-`/],
    ["a free text behind a negative number", ["${input.n}${input.text}"], { n: -1, text: "x" }, /`input.text`/],
    ["a dash in an option's value", ["${input.maybe | optional('--f')}"], { maybe: "-x" }, /starts with `-`/],
    ["a dash in an item", ["${input.list | each}"], { list: ["a", "-x"] }, /starts with `-`/],
    ["a dash when -- only stands in a value", ["${input.method}", "${input.text}"], { method: "merge", text: "-x" }, /starts with `-`/],
    ["a dash before the literal --", ["${input.text}", "--"], { text: "-x" }, /starts with `-`/],
    ["an enum's dash that is not in the enum", ["${input.method}"], { method: "--evil" }, /starts with `-`/],
    ["a NUL character", ["${input.text}"], { text: "a\0b" }, /NUL/],
    ["a NUL character behind --", ["--", "${input.text}"], { text: "a\0b" }, /NUL/],
    ["a lone surrogate", ["${input.text}"], { text: "a\ud800" }, /well-formed/],
    ["an absent value without a default", ["${input.maybe}"], {}, /`input.maybe` is absent/],
    ["a list where a text is needed", ["${input.mixed}"], { mixed: ["a"] }, /list or object/],
    ["a list in a list", ["${input.list | each}"], { list: [["a"]] }, /list or object/],
    ["a null item", ["${input.list | each}"], { list: [null] }, /absent/],
    ["a text where a list is needed", ["${input.mixed | each}"], { mixed: "a" }, /not a list/],
  ])("refuses %s", (_, templates, input, message) => {
    const made = expand(templates, input)
    expect(made).toMatchObject({ ok: false, code: "input_invalid" })
    expect(!made.ok && made.message).toMatch(message)
  })

  it("never says the value", () => {
    expect(JSON.stringify(expand(["${input.text}"], { text: "-s3cr3t" }))).not.toContain("s3cr3t")
  })

  // biome-ignore format: a table reads by rows
  it.each([
    ["one argument", ["${input.text}"], (size: number): JsonObject => ({ text: "x".repeat(size) }), maxArgumentBytes],
    ["all arguments", ["${input.list | each}"], (size: number): JsonObject => ({ list: [...Array.from({ length: 7 }, () => "x".repeat(131_071)), "x".repeat(131_000), "x".repeat(size - 7 * 131_072 - 131_001 - 1)] }), maxArgvBytes],
    ["the number of arguments", ["${input.list | each}"], (size: number): JsonObject => ({ list: Array.from({ length: size }, () => "x") }), maxArgvElements],
  ] as const)("holds the limit on %s exactly and names stdin as the way", (_, templates, input, limit) => {
    expect(expand(templates, input(limit - 1)).ok).toBe(true)
    expect(expand(templates, input(limit)).ok).toBe(true)
    const over = expand(templates, input(limit + 1))
    expect(over).toMatchObject({ ok: false, code: "input_invalid" })
    expect(!over.ok && over.hint).toContain("stdin")
  })

  it("counts bytes, not characters", () => {
    expect(expand(["${input.text}"], { text: "ä".repeat(65_535) }).ok).toBe(true)
    expect(expand(["${input.text}"], { text: "ä".repeat(65_536) }).ok).toBe(false)
  })
})

describe("refusals at registration", () => {
  // biome-ignore format: a table reads by rows
  it.each<[string, readonly string[], readonly string[]]>([
    ["a secret", ["--token=${secrets.KEY}"], ["error:template-secret"]],
    ["an unknown filter", ["${input.text | shell}"], ["error:template-unknown-filter"]],
    ["an undeclared input", ["${input.nope}"], ["error:template-unknown-value"]],
    ["an undeclared property of an input", ["${input.text.length}", "${input.object.constructor}"], []],
    ["a free text in an option's name", ["--${input.text}"], ["error:template-option-composition"]],
    ["a free text behind a short option", ["-I${input.text}"], ["error:template-option-composition"]],
    ["a free text before the =", ["--${input.method}-${input.text}=1"], ["error:template-option-composition"]],
    ["a free text behind an enum that can start with a dash", ["${input.method}${input.text}"], ["error:template-option-composition"]],
    ["a free text behind a default that starts with a dash", ["${input.n | default('-')}${input.text}"], ["error:template-option-composition"]],
    ["a list without a filter", ["${input.list}"], ["error:template-not-a-text"]],
    ["an object in an option", ["${input.object | optional('--f')}"], ["error:template-not-a-text"]],
    ["each of a text", ["${input.text | each}"], ["error:template-not-a-list"]],
    ["optional inside a longer argument", ["--x=${input.maybe | optional('--f')}"], ["error:template-filter-order"]],
    ["flag after default", ["${input.on | default(true) | flag('--x')}"], ["error:template-filter-order"]],
    ["default without a text", ["${input.maybe | default}"], ["error:template-filter-arguments"]],
    ["default from another input", ["${input.maybe | default(input.text)}"], ["error:template-filter-arguments"]],
    ["flag without an option", ["${input.on | flag}"], ["error:template-filter-arguments"]],
    ["an option that is an input", ["${input.on | flag(input.text)}"], ["error:template-filter-arguments"]],
    ["three arguments to optional", ["${input.on | optional('--a', input.text, input.n)}"], ["error:template-filter-arguments"]],
    ["json with arguments", ["${input.object | json('x')}"], ["error:template-filter-arguments"]],
    ["an unclosed expression", ["${input.text"], ["error:template-syntax"]],
    ["an unclosed quote", ["${input.text | default('x)}"], ["error:template-syntax"]],
    ["an empty expression", ["${}"], ["error:template-syntax"]],
    ["another root", ["${env.HOME}"], ["error:template-syntax"]],
    ["the whole input", ["${input}"], ["error:template-syntax"]],
    ["a bracket", ["${input['text']}"], ["error:template-syntax"]],
    ["two paths", ["${input.text input.n}"], ["error:template-syntax"]],
    ["a NUL", ["a\0"], ["error:template-syntax"]],
    ["an over-long template", ["x".repeat(9000)], ["error:template-syntax"]],
  ])("handles %s", (_, templates, expected) => {
    if (expected.length === 0) expect(rules(templates).length).toBeGreaterThan(0)
    else expect(rules(templates)).toEqual(expected)
  })

  it("warns of a value that can be absent", () => {
    expect(rules(["${input.maybe}"])).toEqual(["warning:template-optional-value"])
  })

  it("allows a free text behind a literal --, or behind =", () => {
    expect(rules(["--", "-x${input.text}"])).toEqual([])
    expect(rules(["--x=${input.text}", "-D${input.method}=${input.text}"])).toEqual([])
  })

  it("does not take a mapped input with a transform for an enum", () => {
    expect(rules(["--${input.how}"], { mapping: { how: { from: "method", transform: "lowercase" } } })).toEqual([
      "error:template-option-composition",
    ])
  })

  it("points at the driver-side name of a renamed input", () => {
    const compiled = compileArgv(["${input.text}"], { inputs, mapping: { body: { from: "text" } } }, place)
    expect(compiled.ok).toBe(false)
    expect(compiled.diagnostics[0]).toMatchObject({
      rule: "template-renamed-input",
      fix: "write `input.body`",
      file: place.file,
      path: `${place.path}[0]`,
    })
  })

  it("checks the context against its schema", () => {
    const contextSchema = { type: "object", properties: { tenant: { enum: ["a"] } }, required: ["tenant"] }
    expect(rules(["--${context.tenant}"], { contextSchema })).toEqual([])
    expect(rules(["${context.other}"], { contextSchema })).toEqual(["error:template-unknown-value"])
    expect(rules(["--${context.tenant}"])).toEqual([
      "warning:template-optional-value",
      "error:template-option-composition",
    ])
  })

  it("ends on a schema that refers to itself", () => {
    const loop: JsonSchema = { $ref: "#" }
    expect(rules(["--${input.x}"], { inputs: loop })).toContain("error:template-option-composition")
  })
})

describe("stdin", () => {
  const stdinOf = (template: string, input: JsonObject): string => {
    const compiled = compileStdin(template, scope, place)
    if (!compiled.ok) return compiled.diagnostics.map((each) => each.rule).join()
    const made = expandStdin(compiled.program, { input, context: {} })
    return made.ok ? Buffer.from(made.bytes).toString() : made.code
  }
  // biome-ignore format: a table reads by rows
  it.each<[string, string, JsonObject, string]>([
    ["takes text with dashes and NULs as it is", "${input.text}", { text: "-a\0b" }, "-a\0b"],
    ["takes JSON", "${input.object | json}\n", { object: { deep: "x" } }, '{"deep":"x"}\n'],
    ["takes text beyond the argument limits", "${input.text}", { text: "x".repeat(200_000) }, "x".repeat(200_000)],
    ["refuses filters that make arguments", "${input.list | each}", {}, "template-stdin"],
    ["refuses secrets", "${secrets.x}", {}, "template-secret"],
    ["refuses an absent value", "${input.maybe}", {}, "input_invalid"],
  ])("%s", (_, template, input, expected) => {
    expect(stdinOf(template, input)).toBe(expected)
  })
})

describe("properties", () => {
  const templates = [
    "run",
    "--a=${input.text}",
    "${input.maybe | optional('--m=')}",
    "${input.on | flag('--on')}",
    "--${input.method}",
    "--",
    "${input.text}",
    "${input.list | each}",
  ]
  const program = compile(templates)
  const word = fc.oneof(
    fc.string(),
    fc.string({ unit: "binary" }),
    fc.constantFrom("-x", "--", "${input.n}", "a b", "\0", "$(id)", "", "'\""),
  )
  const values = fc.record({
    text: word,
    maybe: fc.option(word, { nil: undefined }),
    on: fc.boolean(),
    method: fc.constantFrom("merge", "squash"),
    list: fc.array(word, { maxLength: 5 }),
  })

  it("gives exactly the declared arguments, each value unchanged, or refuses", () => {
    fc.assert(
      fc.property(values, ({ text, maybe, on, method, list }) => {
        const made = expandArgv(program, {
          input: { text, on, method, list, ...(maybe === undefined ? {} : { maybe }) },
          context: {},
        })
        const used = [text, maybe ?? "", ...list]
        const refused = used.some((each) => each.includes("\0") || !each.isWellFormed())
        expect(made.ok).toBe(!refused)
        if (!made.ok) return
        expect(made.argv).toEqual([
          "run",
          `--a=${text}`,
          ...(maybe === undefined ? [] : [`--m=${maybe}`]),
          ...(on ? ["--on"] : []),
          `--${method}`,
          "--",
          text,
          ...list,
        ])
      }),
      { numRuns: 500 },
    )
  })

  it("never lets a free text become an option before --", () => {
    const bare = compile([
      "${input.text}",
      "x${input.text}",
      "${input.list | each}",
      "${input.maybe | optional('--m')}",
    ])
    fc.assert(
      fc.property(values, ({ text, list, maybe }) => {
        const made = expandArgv(bare, { input: { text, list, ...(maybe === undefined ? {} : { maybe }) }, context: {} })
        if (made.ok)
          expect(made.argv.filter((each) => each.startsWith("-"))).toEqual(maybe === undefined ? [] : ["--m"])
      }),
      { numRuns: 500 },
    )
  })

  it("never throws on any template, and compiles the same text to the same program", () => {
    const piece = fc.constantFrom(
      "${",
      "}",
      "input.",
      "text",
      "|",
      " default(",
      "'",
      '"',
      ")",
      "json",
      "each",
      "\\",
      ",",
      "-",
      "--",
      "=",
      "1",
      "secrets.",
    )
    fc.assert(
      fc.property(
        fc.oneof(
          fc.array(piece, { maxLength: 14 }).map((each) => each.join("")),
          fc.string(),
        ),
        (text) => {
          const first = compileArgv([text], scope, place)
          expect(compileArgv([text], scope, place)).toEqual(first)
          if (!text.includes("${") && !text.includes("\0"))
            expect(first.ok && expandArgv(first.program, { input: {}, context: {} })).toEqual({
              ok: true,
              argv: [text],
            })
        },
      ),
      { numRuns: 1000 },
    )
  })
})
