/**
 * What a function disposes of at its end is not let go of while its answer is still being made.
 *
 * In functions that are async the linter's `return-await` sees to it, types and all; here it is shown that it does. One
 * that is not async cannot wait: that none of those has both `using` and a promise to return is read from the sources.
 */
import { spawnSync } from "node:child_process"
import { globSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { expect, it } from "vitest"
import { parseSync } from "vite"

const root = join(import.meta.dirname, "../..")

interface Node {
  readonly type: string
  readonly start: number
  readonly async?: boolean
  readonly kind?: string
  readonly returnType?: unknown
  readonly body?: unknown
  readonly [key: string]: unknown
}
const isNode = (value: unknown): value is Node =>
  typeof value === "object" && value !== null && typeof (value as { type?: unknown }).type === "string"
const isFunction = ({ type }: Node): boolean =>
  ["FunctionDeclaration", "FunctionExpression", "ArrowFunctionExpression"].includes(type)
const childrenOf = (node: Node): readonly Node[] =>
  Object.values(node).flatMap((value: unknown) =>
    Array.isArray(value) ? value.filter(isNode) : isNode(value) ? [value] : [],
  )
/** All of a function but the functions in it. */
const ownOf = (node: Node): readonly Node[] =>
  childrenOf(node).flatMap((child) => (isFunction(child) ? [] : [child, ...ownOf(child)]))
const allOf = (node: Node): readonly Node[] => [node, ...childrenOf(node).flatMap(allOf)]

/** Functions, not async, that dispose of something and whose type says a promise, or says nothing while they call for it. */
const early = (name: string, text: string): readonly string[] => {
  if (!/\busing \w/.test(text)) return []
  const program = parseSync(name, text).program as unknown as Node
  const all = allOf(program)
  const constructors = new Set(all.flatMap((node) => (node.kind === "constructor" ? [node["value"]] : [])))
  return all.flatMap((node) => {
    if (!isFunction(node) || node.async === true || node["generator"] === true || constructors.has(node)) return []
    const own = ownOf(node)
    if (!own.some(({ type, kind }) => type === "VariableDeclaration" && kind?.endsWith("using") === true)) return []
    const { start, end } = (node.returnType ?? { start: 0, end: 0 }) as { start: number; end: number }
    const declared = text.slice(start, end)
    return declared === "" || /\bPromise(?:Like)?</.test(declared)
      ? [`${name}:${text.slice(0, node.start).split("\n").length}`]
      : []
  })
}

it("a function that disposes of something and is not async gives no promise, and says so in its type", () => {
  const files = globSync(["src/**/*.ts", "bench/**/*.ts", "scripts/**/*.ts"], { cwd: root })
  expect(files.length).toBeGreaterThan(300)
  expect(files.flatMap((name) => early(name, readFileSync(join(root, name), "utf8")))).toEqual([])
})

it("one that does is found", () => {
  const found = (text: string): number => early("found.ts", text).length
  expect(found("const a = (): Promise<number> => { using x = open(); return work() }")).toBe(1)
  expect(found("function a() { using x = open(); return work() }")).toBe(1)
  expect(found("const a = (): number => { using x = open(); return 1 }")).toBe(0)
  expect(found("const a = async () => { await using x = open(); return await work() }")).toBe(0)
  expect(found("const a = (): Promise<number> => { const b = (): void => { using x = open() }; return work() }")).toBe(
    0,
  )
})

it("the linter refuses a promise that is returned unawaited from where something is disposed of", () => {
  const folder = mkdtempSync(join(tmpdir(), "caisson-linted-"))
  try {
    const [file, types] = [join(folder, "early.ts"), join(folder, "tsconfig.json")]
    const { target, lib, module, strict } = (
      JSON.parse(readFileSync(join(root, "tsconfig.json"), "utf8")) as { compilerOptions: Record<string, unknown> }
    ).compilerOptions
    writeFileSync(
      types,
      JSON.stringify({ compilerOptions: { target, lib, module, strict, types: [] }, include: ["."] }),
    )
    writeFileSync(
      file,
      `const work = async (): Promise<number> => 1
export const early = async (): Promise<number> => {
  await using _open = new AsyncDisposableStack()
  return work()
}
export const inTime = async (): Promise<number> => {
  await using _open = new AsyncDisposableStack()
  return await work()
}
`,
    )
    const { stdout } = spawnSync(
      process.execPath,
      [
        join(root, "node_modules/oxlint/bin/oxlint"),
        "--type-aware",
        "-c",
        join(root, ".oxlintrc.json"),
        "--format=unix",
        file,
      ],
      {
        cwd: folder,
        encoding: "utf8",
        // Where it looks for the part that knows types, whoever started the tests.
        env: { ...process.env, PATH: `${join(root, "node_modules/.bin")}:${process.env["PATH"]}` },
      },
    )
    const found = stdout.split("\n").filter((line) => line.includes("return-await"))
    expect(found).toHaveLength(1)
    expect(found[0]).toContain("early.ts:4:")
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
})
