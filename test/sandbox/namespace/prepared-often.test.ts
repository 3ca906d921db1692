import { getEventListeners } from "node:events"
import { readdirSync } from "node:fs"
import { afterEach, beforeEach, expect, test } from "vitest"
import type { SandboxBackend } from "../../../src/sandbox/backend.ts"
import { createNamespaceBackend } from "../../../src/sandbox/namespace/backend.ts"
import { PARKED } from "../../../src/sandbox/namespace/launcher/limits.ts"
import { shapeOf } from "../../../src/sandbox/profile.ts"
import { commandOf, descendants, profileOf, removeFolder, temporaryFolder, until } from "../../support/sealed.ts"

const channel = { proxyPort: 3128, transparentPorts: [80, 443], dns: true }
const shape = shapeOf(profileOf({ network: channel }))

let data = ""
let backend: SandboxBackend & { start(): Promise<void> }
beforeEach(async () => {
  data = temporaryFolder("data")
  backend = createNamespaceBackend({ data })
  await backend.start()
})
afterEach(async () => {
  await backend[Symbol.asyncDispose]()
  removeFolder(data)
})

/** The launcher itself, inside its namespaces. */
const launcher = (): number =>
  descendants(process.pid)
    .map(({ pid }) => pid)
    .filter((pid) => commandOf(pid).includes(`launcher.ts\0${data}`))
    .at(-1) as number
const shells = (): number =>
  descendants(launcher()).filter(({ pid }) => commandOf(pid).startsWith("/bin/sh\0-s")).length
const filesOf = (pid: number): number => readdirSync(`/proc/${pid}/fd`).length

test("a parked process that was taken is replaced while its sandbox waits for its job", async () => {
  await until(() => shells() === PARKED.ready, "processes are parked")
  const taken = await backend.prepare(shape)
  if (!taken.ok) throw new Error(taken.message)
  await until(() => shells() === PARKED.ready + 1, "as many are parked as before, beside the one that was taken")
  await taken[Symbol.asyncDispose]()
  await until(() => shells() === PARKED.ready, "it is gone, and nothing was parked in its place a second time")
})

test("two hundred sandboxes that were made ready and let go of leave no listener, descriptor or process", async () => {
  const warnings: Error[] = []
  const onWarning = (warning: Error): void => void warnings.push(warning)
  process.on("warning", onWarning)
  const cancel = new AbortController()
  const round = async (times: number): Promise<void> => {
    for (let n = 0; n < times; n += 1) {
      const prepared = await backend.prepare(shape, cancel.signal)
      if (!prepared.ok) throw new Error(prepared.message)
      await prepared[Symbol.asyncDispose]()
    }
    await until(() => shells() === PARKED.ready, "only the parked processes are left")
  }
  await round(10)
  const inside = launcher()
  // Together: what is parked is handed from the one to the other, sooner or later.
  const files = (): number => filesOf(process.pid) + filesOf(inside)
  // The most of some looks: one look may fall before the process that was parked last has handed over what it has.
  let before = 0
  for (let looks = 0; looks < 10; looks += 1) {
    await round(1)
    before = Math.max(before, files())
  }
  await round(200)
  expect(launcher()).toBe(inside)
  await until(() => files() <= before, "the descriptors of this process and the launcher are back")
  expect(getEventListeners(cancel.signal, "abort")).toEqual([])
  process.off("warning", onWarning)
  expect(warnings).toEqual([])
})
