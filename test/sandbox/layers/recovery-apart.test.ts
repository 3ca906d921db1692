import { randomUUID } from "node:crypto"
import { existsSync, mkdirSync, readdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { afterEach, beforeEach, expect, test } from "vitest"
import { txRootOf } from "../../../src/sandbox/effects/commit/recovery/tx-root.ts"
import { takeLockIn } from "../../../src/sandbox/effects/index.ts"
import { folderKey, LockWaitEnded, lookAt } from "../../../src/sandbox/folder.ts"
import { Transactions } from "../../../src/sandbox/layers/transactions.ts"
import { createNamespaceBackend } from "../../../src/sandbox/namespace/backend.ts"
import { prepared, removeFolder, temporaryFolder, until } from "../../support/sealed.ts"

let data = ""
let workspace = ""
beforeEach(() => {
  data = temporaryFolder("data")
  workspace = temporaryFolder("workspace")
})
afterEach(() => {
  removeFolder(data)
  removeFolder(workspace)
})

const lockWorkspace = (): Disposable => {
  const lock = takeLockIn(txRootOf(data), [folderKey(lookAt(workspace))])
  if (lock === undefined) throw new Error("somebody holds it")
  return lock
}

test("what a crash left of a large commit is removed while everything else of the process goes on", async () => {
  const transactions = new Transactions(data)
  const left = join(transactions.root, `trash-${folderKey(lookAt(workspace))}-${randomUUID()}`)
  const FILES = 20_000
  for (let folder = 0; folder < FILES / 1000; folder += 1) {
    mkdirSync(join(left, String(folder)), { recursive: true, mode: 0o700 })
    for (let file = 0; file < 1000; file += 1) writeFileSync(join(left, String(folder), String(file)), "")
  }
  const count = (): number =>
    existsSync(left) ? readdirSync(left).reduce((sum, name) => sum + readdirSync(join(left, name)).length, 0) : 0
  let over = false
  const recovering = transactions.recover(workspace).finally(() => {
    over = true
  })
  const seen = new Set<boolean>()
  while (!over) {
    await new Promise((resolve) => setImmediate(resolve))
    try {
      const now = count()
      if (now > 0 && now < FILES) seen.add(true)
    } catch {
      // A folder went while it was looked at: that is half-way too.
      seen.add(true)
    }
  }
  await recovering
  expect(existsSync(left)).toBe(false)
  expect(seen.size, "this process saw it half-way").toBe(1)
})

test("a wait for another commit's lock ends when it is cancelled, as that", async () => {
  using _lock = lockWorkspace()
  const cancel = new AbortController()
  const recovering = new Transactions(data).recover(workspace, cancel.signal)
  setImmediate(() => cancel.abort())
  await expect(recovering).rejects.toThrow(LockWaitEnded)
})

test("a held layer's wait for another commit ends when it is cancelled, and it can be written afterwards", async () => {
  await using backend = createNamespaceBackend({ data })
  const sandbox = await prepared(backend)
  const exited = await sandbox.run({ argv: ["/usr/bin/sh", "-c", "echo new > new"], workspace })
  if (!exited.ok) throw new Error(exited.message)
  const at = join(data, "held", "01A")
  mkdirSync(at, { recursive: true, mode: 0o700 })
  const answer = await exited.hold({ at, bytes: 1 << 20 })
  if (!answer.ok) throw new Error(answer.message)
  const held = { at, digest: answer.layer.digest, name: "01A" }
  const lock = lockWorkspace()
  const cancel = new AbortController()
  const waiting = backend.commitHeld(held, cancel.signal)
  setImmediate(() => cancel.abort())
  expect(await waiting).toMatchObject({ ok: false, reason: "failed", message: expect.stringContaining("cancelled") })
  expect(readdirSync(workspace)).toEqual([])
  lock[Symbol.dispose]()
  expect(await backend.commitHeld(held)).toEqual({ ok: true })
  await until(() => existsSync(join(workspace, "new")), "it is written")
})
