/** `conform`: examples run sealed, what holds and what does not, by the command and by the library. */
import {
  appendFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  symlinkSync,
  writeFileSync,
} from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { afterAll, beforeAll, describe, expect, test } from "vitest"
import { conform, createHost, type ConformCase } from "../../src/host/index.ts"
import type { Host } from "../../src/host/types.ts"
import { caisson, scratch } from "../cli/run-caisson.ts"

const scribe = fileURLToPath(new URL("../../tour/scribe", import.meta.url))
let room: ReturnType<typeof scratch>
let data: string
/** Of this file alone: others conform beside it. */
let temporary: string

/** The tour's scribe under another name, with what its examples say. */
const author = (id: string, examples: string, more = (text: string): string => text): string => {
  const folder = join(room.folder, id)
  cpSync(scribe, folder, { recursive: true })
  const driver = readFileSync(join(folder, "DRIVER.md"), "utf8").replace("id: scribe", `id: ${id}`)
  writeFileSync(join(folder, "DRIVER.md"), more(driver))
  const tool = readFileSync(join(folder, "TOOL.md"), "utf8").replace("id: tour.note", `id: ${id}.note`)
  writeFileSync(join(folder, "TOOL.md"), tool.replace("timeout_ms:", `${examples}\ntimeout_ms:`))
  return folder
}
const run = (args: readonly string[], env = {}) =>
  caisson(["conform", ...args], { env: { CAISSON_DATA: data, TMPDIR: temporary, ...env } })
const workspacesLeft = (): readonly string[] =>
  readdirSync(temporary).filter((name) => name.startsWith("caisson-conform-"))

const input = "{ name: monday, text: dry }"
/** The scribe makes no folder. */
const files = "files: { notes/kept.txt: kept }"
const plain = `examples: [{ name: a note, input: ${input}, output: "wrote notes/monday.txt\\n" }]
metadata: { conform: [{ name: a note, ${files} }] }`

beforeAll(() => {
  room = scratch()
  data = join(room.folder, "data")
  temporary = join(room.folder, "tmp")
  mkdirSync(temporary)
})
afterAll(() => room[Symbol.dispose]())

describe("caisson conform", () => {
  test("holds what a contract says by example: output, effects, errors, schema, pattern", async () => {
    const folder = author(
      "keeper",
      `examples: [{ name: a note, input: ${input} }]
metadata:
  conform:
    - { name: a note, ${files}, effects: [create notes/m*.txt], pattern: "^wrote" }
    - { name: over another, input: ${input}, files: { notes/monday.txt: "old" }, effects: [modify notes/monday.txt], schema: { type: string } }
    - { name: a name that is none, input: { name: "A B", text: x }, error: input_invalid, effects: [] }
    - { name: after another, ${files}, input: { name: tuesday, text: x }, before: [{ tool: keeper.note, input: ${input} }], effects: [create notes/tuesday.txt] }`,
    )
    const { code, stdout, stderr } = await run(["keeper", "--manifests", folder])
    expect(stderr).toContain("4 passed, 0 failed")
    expect(code).toBe(0)
    const report = JSON.parse(stdout) as { ok: boolean; cases: readonly Record<string, unknown>[] }
    expect(report).toMatchObject({ ok: true, passed: 4, failed: 0 })
    expect(report.cases[0]).toMatchObject({ tool: "keeper.note@1", driver: "keeper@1", outcome: "passed" })
    expect(report.cases[0]?.["receipt"]).toMatch(/^sha256:/)
  })

  test("tells each that does not hold, in every form, and ends with 1", async () => {
    const folder = author(
      "breaker",
      `examples: [{ name: "an odd <&> \\x1b[31m\\u202e name", input: ${input}, output: "something else" }]
metadata:
  conform:
    - { name: another effect, input: ${input}, ${files}, effects: [create a.txt] }
    - { name: an error that does not come, input: ${input}, ${files}, error: upstream_error }`,
    )
    const junit = join(room.folder, "report.xml")
    const summary = join(room.folder, "summary.md")
    appendFileSync(summary, "before\n")
    const { code, stdout, stderr } = await run(["breaker", "--manifests", folder, "--junit", junit, "--tap"], {
      GITHUB_ACTIONS: "true",
      GITHUB_STEP_SUMMARY: summary,
      GITHUB_WORKSPACE: room.folder,
    })
    expect(code).toBe(1)
    expect(stdout.split("\n").filter((line) => /^(not )?ok /.test(line))).toHaveLength(3)
    expect(stdout).toMatch(/^TAP version 14\n1\.\.3\nnot ok 1 - /)
    const xml = readFileSync(junit, "utf8")
    expect(xml).toContain('tests="3" failures="3" errors="0"')
    expect(xml).toContain("an odd &lt;&amp;&gt; \\x1b[31m\\u{202e} name")
    expect(xml).toContain("an expected effect is missing")
    for (const text of [xml, stdout, stderr, readFileSync(summary, "utf8")]) expect(text).not.toMatch(/[\x1b\u202e]/)
    expect(stderr).toMatch(/^::error file=breaker\/TOOL\.md,line=\d+,title=breaker@1/m)
    expect(readFileSync(summary, "utf8")).toMatch(/^before\n### caisson conform: 0 passed, 3 failed\n/)
    expect(workspacesLeft()).toEqual([])
  })

  test("one permission removed turns it red, with the reason", async () => {
    const folder = author("narrow", plain, (text) => text.replace('write: ["notes", "notes/**"]', "write: [other]"))
    const { code, stdout } = await run(["narrow", "--manifests", folder])
    expect(code).toBe(1)
    expect(stdout).toContain("undeclared_write")
  })

  test("a driver without examples says so, and how to write one", async () => {
    const folder = author("mute", "")
    const { code, stderr } = await run(["mute", "--manifests", folder])
    expect(code).toBe(2)
    expect(stderr).toContain("mute@1 has no example that can be run")
    expect(stderr).toContain("examples: [{ name:")
  })

  test("a name that is not registered is told with the nearest, and so is naming nothing", async () => {
    const unknown = await run(["jqq"])
    expect(unknown).toMatchObject({ code: 2, stderr: expect.stringContaining("did you mean jq?") })
    expect(await run([])).toMatchObject({ code: 2, stderr: expect.stringContaining("--all") })
  })

  test("copies nothing of this machine that a link beside the manifest leads to", async () => {
    const secret = join(room.folder, "elsewhere")
    mkdirSync(secret, { recursive: true })
    writeFileSync(join(secret, "key"), "private")
    const folder = author("thief", `examples: [{ name: a note, input: ${input} }]`)
    symlinkSync(secret, join(folder, "example"))
    const { code, stdout } = await run(["thief", "--manifests", folder])
    expect(code).toBe(1)
    expect(stdout).toContain("leads out of the manifest's folder")
    expect(workspacesLeft()).toEqual([])
  })

  test("what a contract changes elsewhere is not run unasked", async () => {
    const folder = author("sender", plain)
    const tool = join(folder, "TOOL.md")
    writeFileSync(tool, readFileSync(tool, "utf8").replace("mutates: [", "mutates: [external:mail, "))
    const unasked = await run(["sender", "--manifests", folder])
    expect(unasked).toMatchObject({ code: 2, stdout: expect.stringContaining('"skipped":1') })
    expect((await run(["sender", "--manifests", folder, "--outside"])).stdout).toContain('"passed":1')
  })

  test("what a manifest or a tool says is no command of a CI runner, and a report goes through no link", async () => {
    const command = "##[set-output name=a]b"
    const folder = author("runner", `examples: [{ name: "${command}", input: ${input}, output: "${command}" }]`)
    const [report, outside] = [join(room.folder, "linked.xml"), join(room.folder, "kept.txt")]
    writeFileSync(outside, "mine")
    symlinkSync(outside, report)
    const env = { GITHUB_ACTIONS: "true" }
    for (const more of [["--tap"], ["--json"], ["--json", "--junit", report]]) {
      const { stdout, stderr } = await run(["runner", "--manifests", folder, ...more], env)
      const lines = `${stdout}\n${stderr}`.split("\n").filter((line) => !line.startsWith("::error "))
      expect(lines.filter((line) => line.includes("##["))).toEqual([])
    }
    expect(readFileSync(outside, "utf8")).toBe("mine")
  })

  test("a driver whose manifest is refused is told why it is not there", async () => {
    const folder = author("broken", `metadata: { conform: [{ name: x, input: ${input}, files: { ../../evil: x } }] }`)
    const { code, stderr } = await run(["broken", "--manifests", folder])
    expect(code).toBe(2)
    expect(stderr).toContain(join(folder, "TOOL.md"))
  })

  test("what changes things elsewhere is not called unasked to make an example ready, recording or not", async () => {
    const sender = author("courier", plain)
    const tool = join(sender, "TOOL.md")
    writeFileSync(tool, readFileSync(tool, "utf8").replace("mutates: [", "mutates: [external:mail, "))
    const step = `before: [{ tool: courier.note, input: ${input} }]`
    const folder = author(
      "readied",
      `metadata: { conform: [{ name: x, input: ${input}, ${files}, ${step}, replay: none.jsonl }] }`,
    )
    writeFileSync(join(folder, "none.jsonl"), '{"caisson_recording":1,"exchanges":0}\n')
    const { code, stdout } = await run(["readied", "--manifests", folder, "--manifests", sender])
    expect({ code, stdout }).toMatchObject({
      code: 2,
      stdout: expect.stringContaining("courier.note changes things elsewhere"),
    })
  })

  test("a case with a recording runs twice, and fails where chance makes another write set", async () => {
    const folder = author(
      "chancy",
      `metadata: { conform: [{ name: x, input: ${input}, ${files}, replay: none.jsonl }] }`,
    )
    writeFileSync(join(folder, "none.jsonl"), '{"caisson_recording":1,"exchanges":0}\n')
    expect((await run(["chancy", "--manifests", folder])).stdout).toContain('"passed":1')
    const bin = join(folder, "bin", "scribe")
    writeFileSync(bin, readFileSync(bin, "utf8").replace('"$3" >', '"$RANDOM$RANDOM$RANDOM" >'))
    const { code, stdout } = await run(["chancy", "--manifests", folder])
    expect(stdout).toContain("draws on the clock or on chance")
    expect(code).toBe(1)
  })

  test("validate tells what is wrong with an expectation, by field", async () => {
    const folder = author(
      "wrong",
      `metadata: { conform: [{ name: x, input: {}, pattern: "(", workspace: "../up", effects: [grow a.txt] }] }`,
    )
    const { code, stdout } = await caisson(["validate", folder], { env: { CAISSON_DATA: data } })
    expect(code).toBe(2)
    expect(stdout).toContain("metadata.conform[0].effects[0]")
    writeFileSync(
      join(folder, "TOOL.md"),
      readFileSync(join(folder, "TOOL.md"), "utf8").replace(", effects: [grow a.txt]", ""),
    )
    const again = (await caisson(["validate", folder], { env: { CAISSON_DATA: data } })).stdout
    expect(again).toContain("metadata.conform[0].pattern")
    expect(again).toContain("metadata.conform[0].workspace")
  })
})

describe("conform as a library", () => {
  let host: Host
  let cases: readonly ConformCase[]
  beforeAll(async () => {
    host = await createHost({ data: join(room.folder, "library") })
    cases = await conform(host, { driver: "caisson-files" })
  })
  afterAll(async () => host?.close())

  test("yields the cases of a driver, each of which runs by itself", async () => {
    expect(cases.map(({ tool }) => tool)).toContain("file.write@1")
    for (const each of cases) expect(await each.run(), each.title).toMatchObject({ outcome: "passed" })
  })

  test("examples of the catalogue that need the network are answered from recordings", async () => {
    for (const each of await conform(host, { tool: ["http.fetch", "vulnerability.show"] })) {
      const result = await each.run()
      expect(["passed", "blocked"], each.title).toContain(result.outcome)
      if (result.outcome === "blocked") expect(result.code).toBe("tool_unavailable")
    }
  })

  test("the write set of equal runs has one digest, and of another run another", async () => {
    const writing = cases.filter(({ tool }) => tool === "file.write@1")
    const digests = await Promise.all([writing[0]?.run(), writing[0]?.run()])
    expect(digests[0]?.writeSet).toBe(digests[1]?.writeSet)
    const other = cases.find(({ tool }) => tool === "file.edit@1")
    expect((await other?.run())?.writeSet).not.toBe(digests[0]?.writeSet)
  })

  test("a driver that is not there is an error of the program's", async () => {
    await expect(conform(host, { driver: "nobody" })).rejects.toThrow("there is no driver nobody")
    expect(existsSync(join(room.folder, "library"))).toBe(true)
  })
})
