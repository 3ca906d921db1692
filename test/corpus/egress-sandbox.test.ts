/** The egress corpus from inside a sandbox of the namespace backend, and a look for what that left behind. */
import { afterAll, expect } from "vitest"
import { createNamespaceBackend } from "../../src/sandbox/namespace/backend.ts"
import {
  descendants,
  groupsOf,
  removeFolder,
  stillAlive,
  strayMounts,
  temporaryFolder,
  until,
} from "../support/sealed.ts"
import { egressFromInside } from "./egress-from-inside.ts"

const data = temporaryFolder("data")
const backend = createNamespaceBackend({ data })
// Hooks run in reverse: the suite's own sandbox has left by now.
afterAll(async () => {
  const ours = descendants(process.pid)
  await backend[Symbol.asyncDispose]()
  await until(() => stillAlive(ours).length === 0, "every process of the backend is gone")
  await until(() => groupsOf(process.pid).length === 0, "every group of the backend is gone")
  expect(strayMounts(data)).toEqual([])
  removeFolder(data)
})

egressFromInside(() => backend)
