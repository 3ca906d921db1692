import { mkdirSync } from "node:fs"
import { afterAll, beforeAll, expect } from "vitest"
import type { SandboxBackend } from "../../../src/sandbox/backend.ts"
import { createNamespaceBackend } from "../../../src/sandbox/namespace/backend.ts"
import { descendants, stillAlive, strayMounts, temporaryFolder, until } from "../../support/sealed.ts"
import { removeFolder } from "../../support/remove-folder.ts"
import { runningSuite } from "../running-suite.ts"

let folder = ""
let backend: SandboxBackend
beforeAll(() => {
  folder = temporaryFolder("running")
  for (const data of ["data", "killed"]) mkdirSync(`${folder}/${data}`)
  backend = createNamespaceBackend({ data: `${folder}/data` })
})
afterAll(async () => {
  const ours = descendants(process.pid)
  await backend[Symbol.asyncDispose]()
  await until(() => stillAlive(ours).length === 0, "no process is left")
  expect(strayMounts(folder)).toEqual([])
  removeFolder(folder)
})

runningSuite({
  backend: () => backend,
  folder: () => folder,
  host: () => ["namespace", `${folder}/killed`],
})
