/** What the documents tell people to type, typed: the README's own blocks, and the tour's commands. */
import { mkdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { execa } from "execa"
import { afterEach, beforeEach, expect, test } from "vitest"
import { scratch } from "../cli/run-caisson.ts"
import { blocksIn, blocksOf, clone, type as typeIn, writeShown } from "./typing.ts"

let room: ReturnType<typeof scratch>
beforeEach(() => {
  room = scratch()
})
afterEach(() => room[Symbol.dispose]())

const type = (commands: string, stopAtFailure: boolean): Promise<readonly string[]> =>
  typeIn(commands, { room: room.folder, stopAtFailure })

/** The sh blocks below a heading of the README. */
const blocksBelow = (heading: string): string => {
  const text = readFileSync(join(clone, "README.md"), "utf8")
  return blocksIn(text.split(/^## /m).find((part) => part.startsWith(heading)) ?? "").join("")
}

test("the README's first calls all work as they are written", async () => {
  const said = await type(blocksBelow("First calls"), true)
  const values = said.map((line) => (JSON.parse(line) as { value?: unknown }).value)
  expect(values).toContainEqual(["bolt"])
  expect(said.filter((line) => line.includes('"path":"a.txt"') && line.includes('"committed":true'))).toHaveLength(1)
})

test("the README's commands that are run without a manifest work as they are written", async () => {
  const said = await type(blocksBelow("Any command"), true)
  expect(said.some((line) => line.endsWith(" README.md"))).toBe(true)
})

test("the README's recipe for hosts of one's own leads to the driver with those hosts", async () => {
  const said = await type(blocksBelow("The catalogue"), true)
  expect(JSON.parse(said.at(-1) ?? "")).toMatchObject({ selected: "my-curl@1", egress: ["docs.example.org"] })
})

test("the example of the manifest reference validates strictly, and its own example holds", async () => {
  expect(writeShown("docs/manifests.md", room.folder)).toHaveLength(2)
  const manifests = join(room.folder, "notes")
  mkdirSync(join(room.folder, "workspace"))
  writeFileSync(join(room.folder, "workspace/empty.txt"), "")
  const said = await type(
    `npx caisson validate --strict ${manifests}
    npx caisson call notes.count --manifests ${manifests} --workspace ${room.folder}/workspace -i '{"path": "empty.txt"}'`,
    true,
  )
  expect(said.map((line) => JSON.parse(line) as object)).toMatchObject([
    { ok: true, manifests: 2, warnings: 0 },
    { ok: true, value: "0 empty.txt\n" },
  ])
})

/** The programs that a document shows whole (```ts NAME), run as a module of this clone. */
const runShown = (document: string): Promise<readonly string[]> =>
  Promise.all(
    [...readFileSync(join(clone, document), "utf8").matchAll(/^```ts \S+\.ts\n(.*?)^```/gms)].map(
      async ([, program = ""], at) => {
        const words = ["--conditions=caisson-source", "--input-type=module-typescript", "--eval", program]
        const env = { CAISSON_DATA: join(room.folder, `data-${at}`) }
        return (await execa(process.execPath, words, { cwd: clone, env })).stdout
      },
    ),
  )

test("the programs in the library's document do what it says of them", async () => {
  expect(await runShown("docs/library.md")).toEqual(["[1]", '"AHOY"', "403 elsewhere.example:80", "false true false"])
})

test("every command that the tour shows can be typed and ends as in the tour", async () => {
  const shown = await execa(process.execPath, [join(clone, "src", "cli", "tour.ts")], { env: { NO_COLOR: "1" } })
  const commands = shown.stdout.split("\n").filter((line) => line.startsWith("$ "))
  const said = await type(commands.map((line) => line.slice(2)).join("\n"), false)
  expect(said.map((line) => JSON.parse(line) as object)).toMatchObject([
    { ok: true, effects: [expect.objectContaining({ path: "notes/monday.txt", committed: true })] },
    { ok: false, error: { code: "undeclared_write" } },
    { ok: true, denied: [expect.objectContaining({ target: expect.stringContaining("telemetry.example.net") })] },
    { ok: true, entries: 3 },
  ])
})

test("docs/conform.md is typed as it is written, from a folder of one's own", async () => {
  const typed = blocksOf("docs/conform.md").join("")
  const said = await type(`JUNIT=$(mktemp -d)\n${typed.replaceAll("report.xml", '"$JUNIT/report.xml"')}`, true)
  const reports = said.filter((line) => line.startsWith("{")).map((line) => JSON.parse(line) as { ok: boolean })
  expect(reports.map(({ ok }) => ok)).toEqual([true, true, true, false])
  expect(said.filter((line) => line.startsWith("ok "))).toHaveLength(5)
})

test("docs/replay.md is typed as it is written", async () => {
  const said = await type(blocksOf("docs/replay.md").join(""), true)
  expect(said.map((line) => JSON.parse(line) as object)).toMatchObject([
    { ok: true, notes: [expect.stringContaining("recorded: 0 exchanges")] },
    { ok: true, notes: [expect.stringContaining("replayed: 0 of 0 exchanges")] },
  ])
})

test("docs/run.md is typed as it is written, but for the host that is elsewhere", async () => {
  const written = blocksOf("docs/run.md").join("")
  const typed = written.split("\n").filter((line) => !line.includes("curl"))
  const said = await type(`W=$(mktemp -d)\n${typed.join("\n")}\nls "$W/out"; ls "$W" | wc -l`, true)
  expect(said.some((line) => line.endsWith(" README.md"))).toBe(true)
  expect(said.slice(-2)).toEqual(["now.txt", "1"])
})
