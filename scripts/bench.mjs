/**
 * `npm run bench [-- NAME… --OPTION…]`: runs every measurement in `bench/`, or those whose name contains a NAME, with
 * the pinned Node. Options go to each. A file that exports something is a part of others and not run. At the end one
 * table says which bars were met; `--write` puts it into `bench/results.md`, with the machine and its load.
 *
 * Guarantees: one after the other, output passed through; fails if one fails or none matches.
 */
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { cpus, loadavg, release, tmpdir, totalmem } from "node:os"
import { join } from "node:path"
import { environmentWith, root, runToEnd, say } from "./house.mjs"
import { setup } from "./setup.mjs"

const node = setup()
const wanted = process.argv.slice(2).filter((word) => !word.startsWith("-"))
const options = process.argv.slice(2).filter((word) => word.startsWith("-"))
const isMeasurement = (name) =>
  name.endsWith(".ts") && !/^export /m.test(readFileSync(join(root, "bench", name), "utf8"))
const isWanted = (name) => wanted.length === 0 || wanted.some((word) => name.includes(word))
const files = readdirSync(join(root, "bench"))
  .filter((name) => isMeasurement(name) && isWanted(name))
  .sort()
if (files.length === 0) {
  say(`caisson: no bench matches ${wanted.join(" ") || "(none are there)"}`)
  process.exitCode = 2
}
const folder = mkdtempSync(join(tmpdir(), "caisson-bench-rows-"))
const gathered = join(folder, "rows")
const loadBefore = loadavg()[0] ?? 0
try {
  writeFileSync(gathered, "")
  for (const name of files) {
    say(`bench/${name}`)
    const env = { ...environmentWith(node), CAISSON_BENCH_ROWS: gathered }
    const code = await runToEnd(node, [join(root, "bench", name), ...options], { env })
    if (code !== 0) process.exitCode = 1
  }
  /** @type {{ what: string, ratio: number, bar: number, atLeast: boolean }[]} */
  const rows = readFileSync(gathered, "utf8")
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line))
  const table = [
    "| what | ratio | bar | |",
    "|---|---|---|---|",
    ...rows.map(({ what, ratio, bar, atLeast }) => {
      const met = atLeast ? ratio >= bar : ratio <= bar
      return `| ${what} | ${ratio.toFixed(2)} | ${atLeast ? "≥" : "≤"} ${bar} | ${met ? "met" : "missed"} |`
    }),
  ].join("\n")
  if (rows.length > 0) console.log(`\n${table}`)
  if (process.argv.includes("--write") && rows.length > 0) {
    const at = join(root, "bench", "results.md")
    const mark = "<!-- what stands below is written by `npm run bench -- --write` -->"
    const told = readFileSync(at, "utf8").split(mark)[0]
    const words = process.argv.slice(2).filter((word) => word !== "--write")
    const machine = `${cpus().length} × ${cpus()[0]?.model.trim() ?? "?"}, ${Math.round(totalmem() / 2 ** 30)} GB, Linux ${release()}, Node ${process.version}`
    const load = `load ${loadBefore.toFixed(1)} before, ${(loadavg()[0] ?? 0).toFixed(1)} after`
    const head = `\`npm run bench${words.length > 0 ? ` -- ${words.join(" ")}` : ""}\`, ${new Date().toISOString().slice(0, 10)}: ${machine}; ${load}.`
    writeFileSync(at, `${told}${mark}\n\n${head}\n\n${table}\n`)
  }
} finally {
  rmSync(folder, { recursive: true, force: true })
}
