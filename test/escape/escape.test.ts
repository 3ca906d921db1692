/** The whole table of hostile programs on the namespace backend, and a look for what it left behind. */
import { execFile } from "node:child_process"
import { readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { promisify } from "node:util"
import { afterAll, beforeAll, describe, expect, test } from "vitest"
import { createNamespaceBackend } from "../../src/sandbox/namespace/backend.ts"
import {
  descendants,
  groupsOf,
  prepared,
  removeFolder,
  stillAlive,
  strayMounts,
  temporaryFolder,
  until,
} from "../support/sealed.ts"
import { applies, caseGroups, escapeCases } from "./cases/index.ts"
import type { Verdict } from "./escape-case.ts"
import { type Ground, openGround } from "./ground.ts"
import { runEscapeCase } from "./run-escape-case.ts"

const data = temporaryFolder("data")
let ground: Ground
// The host's environment holds the secret before the backend starts anything.
beforeAll(async () => {
  ground = await openGround()
})
const backend = createNamespaceBackend({ data })
afterAll(async () => {
  await ground[Symbol.asyncDispose]()
  const ours = descendants(process.pid)
  await backend[Symbol.asyncDispose]()
  await until(() => stillAlive(ours).length === 0, "every process of the backend is gone")
  await until(() => groupsOf(process.pid).length === 0, "every group of the backend is gone")
  expect(strayMounts(data, "caisson-escape")).toEqual([])
  removeFolder(data)
})

for (const [group, cases] of Object.entries(caseGroups)) {
  describe(group, () => {
    test.for(cases.filter(applies))("$name", async (escape) => {
      const { breaches, ending } = await runEscapeCase(backend, escape, ground)
      expect(breaches, ending).toEqual([])
    })
  })
}

test("every case has a name of its own, and there are at least seventy", () => {
  expect(new Set(escapeCases.map(({ name }) => name)).size).toBe(escapeCases.length)
  expect(escapeCases.length).toBeGreaterThanOrEqual(70)
})

test("a NUL in a variable or an argument is refused before anything runs: it would be the sandbox's next option", async () => {
  for (const env of [{ X: "x\0--cap-add\0ALL" }, { "X\0": "y" }, { "X=Y": "z" }, { "": "z" }]) {
    const job = { argv: ["/usr/bin/sh", "-c", "true"], workspace: ground.folder }
    expect(await (await prepared(backend, { env })).run(job)).toMatchObject({ ok: false, control: "environment" })
  }
  const sandbox = await prepared(backend)
  const job = { argv: ["/usr/bin/sh", "-c", "true", "a\0b"], workspace: ground.folder }
  expect(await sandbox.run(job)).toMatchObject({ ok: false, control: "arguments" })
})

test("a descriptor that the host's own parent left open does not get in", async () => {
  const folder = temporaryFolder("leak")
  const secret = join(folder, "secret")
  writeFileSync(secret, "left open")
  const script = 'exec 77<>"$1" 78<"$2"; exec "$3" --no-warnings "$4" --only "descriptor"'
  const program = fileURLToPath(new URL("./run-cases.ts", import.meta.url))
  const { stdout } = await promisify(execFile)("bash", [
    "-c",
    script,
    "bash",
    secret,
    folder,
    process.execPath,
    program,
  ])
  const verdicts = stdout
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as Verdict)
  expect(verdicts.length).toBeGreaterThanOrEqual(2)
  expect(verdicts.flatMap(({ breaches }) => breaches)).toEqual([])
  expect(readFileSync(secret, "utf8")).toBe("left open")
  removeFolder(folder)
})
