/**
 * The protocol's own conformance suite, in the role of a client, against `/mcp` of a daemon whose tools are contracts run
 * sealed: all that a revision requires of a server, and the extension of tasks. No failure is expected, and none excused.
 */
import { execFile } from "node:child_process"
import { mkdtempSync, readdirSync, readFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { promisify } from "node:util"
import { afterAll, beforeAll, expect, it } from "vitest"
import { describeNeeding } from "../support/needing.ts"
import { removeFolder } from "../support/remove-folder.ts"
import { fetchSuite } from "./mcp-suite-fetched.ts"
import { openSuiteWorld, type SuiteWorld } from "./mcp-suite-world.ts"

const run = promisify(execFile)
const { entry: suiteEntry, folder: suiteFolder, missing } = await fetchSuite()

interface Check {
  readonly id: string
  readonly status: "SUCCESS" | "FAILURE" | "WARNING" | "SKIPPED" | "INFO"
  readonly errorMessage?: string
}

/**
 * Scenarios that are run beside those that count, and what of them is not served: an anchor in a contract's schema is
 * refused when the manifest is loaded; no contract mirrors an input into a header; streams are not resumed.
 */
const unserved: readonly string[] = [
  "json-schema-2020-12",
  "http-custom-header-server-validation",
  "server-sse-polling",
  "tasks-status-notifications",
]

/** What it waits for by a clock of its own, a second and a half, and only warns of: another test sees that changes are told. */
const timed = /-list-changed-on-subscription$/

describeNeeding("the conformance suite", missing, () => {
  let world: SuiteWorld
  const folders: string[] = []
  beforeAll(async () => {
    world = await openSuiteWorld()
  })
  afterAll(async () => {
    await world[Symbol.asyncDispose]()
    for (const folder of folders) removeFolder(folder)
  })
  /** Every check of every scenario, by scenario. */
  const examined = async (revision: string): Promise<ReadonlyMap<string, readonly Check[]>> => {
    const out = mkdtempSync(join(tmpdir(), "caisson-suite-"))
    folders.push(out)
    const words = ["server", "--url", world.url, "--requirements", revision, "--timeout", "120000", "--output-dir", out]
    await run(process.execPath, [suiteEntry, ...words], { cwd: suiteFolder, maxBuffer: 1 << 24 }).catch(() => undefined)
    const scenario = (name: string): string => name.replace(/^server-/, "").replace(/-\d{4}-\d\d-\d\dT.*$/, "")
    return new Map(
      readdirSync(out).map((name) => [
        scenario(name),
        JSON.parse(readFileSync(join(out, name, "checks.json"), "utf8")) as readonly Check[],
      ]),
    )
  }
  it.each([
    ["2026-07-28", 37],
    ["2025-11-25", 30],
  ] as const)("%s: all %d scenarios that it requires, and tasks where it has them", async (revision, required) => {
    const scenarios = await examined(revision)
    const served = [...scenarios].filter(([name]) => !unserved.includes(name))
    expect(served.length).toBeGreaterThanOrEqual(required)
    const bad = served.flatMap(([name, checks]) =>
      checks
        .filter(({ status, id }) => status === "FAILURE" || (status === "WARNING" && !timed.test(id)))
        .map(({ id, errorMessage }) => `${name}: ${id}: ${errorMessage ?? ""}`),
    )
    expect(bad).toEqual([])
    // Each was looked at: a scenario that found nothing to look at would pass as well.
    const idle = served.filter(([, checks]) => !checks.some(({ status }) => status === "SUCCESS")).map(([name]) => name)
    expect(idle).toEqual([])
  })
})
