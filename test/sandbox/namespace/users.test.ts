/** What the kernel counts per user is not another call's to use up. */
import { execFileSync } from "node:child_process"
import { afterAll, beforeAll, expect, test } from "vitest"
import { noRoot, testNeeding } from "../../support/needing.ts"
import { patience } from "../../support/patience.ts"
import { createNamespaceBackend } from "../../../src/sandbox/namespace/backend.ts"
import { finish, prepared, removeFolder, runPython, temporaryFolder, until } from "../../support/sealed.ts"
import { greedy, isSated, modest } from "../greedy.ts"

const data = temporaryFolder("data")
const workspace = temporaryFolder("workspace")
const backend = createNamespaceBackend({ data })
const other = createNamespaceBackend({ data: temporaryFolder("other") })
const mark = `greedy-${process.pid}`
const cancel = new AbortController()
let taking: Promise<unknown> | undefined

beforeAll(async () => {
  const sandbox = await prepared(backend, {
    program: "/usr/bin/python3",
    limits: { wallMs: 1_200_000, openFiles: 4096 },
  })
  taking = finish(sandbox, { argv: ["/usr/bin/python3", "-c", greedy(mark)], workspace }, cancel.signal)
  await until(() => isSated(mark), "the greedy program has all it can get", 60_000 * patience)
})
afterAll(async () => {
  cancel.abort()
  await taking
  await backend[Symbol.asyncDispose]()
  await other[Symbol.asyncDispose]()
  removeFolder(data)
  removeFolder(workspace)
})

testNeeding("a call that takes every inotify instance leaves those of another call alone", noRoot, async () => {
  for (const at of [backend, other])
    expect((await runPython(at, workspace, modest, { limits: { openFiles: 4096 } })).stdout).toBe("10\n")
})
test("a call that takes every inotify instance leaves enough to the other programs of its user", () => {
  expect(Number(execFileSync("/usr/bin/python3", ["-c", modest], { encoding: "utf8" }))).toBe(10)
})
