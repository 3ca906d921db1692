import { closeSync, existsSync, openSync, readFileSync } from "node:fs"
import { afterEach, beforeEach, expect, test } from "vitest"
import { launch } from "../../../src/sandbox/namespace/launch.ts"
import { type HandOver, ParkedProcesses } from "../../../src/sandbox/namespace/launcher/parked-processes.ts"
import { usualRoles } from "../../../src/sandbox/network/listeners.ts"
import { currentNetwork } from "../../../src/sandbox/network/netns.ts"
import { findGroups } from "../../../src/sandbox/process/cgroup.ts"
import { treeGone } from "../../../src/sandbox/process/tree.ts"
import { describeNeeding, noRoot } from "../../support/needing.ts"
import { commandOf, descendants, removeFolder, temporaryFolder, until } from "../../support/sealed.ts"

const groups = findGroups({ mountinfo: "", selfCgroup: "", hostPid: process.pid, isDead: () => false })

describeNeeding("parked processes that are kept ready", noRoot, () => {
  const taken: Disposable[] = []
  let interpreter = -1
  beforeEach(() => {
    interpreter = openSync("/usr/bin/perl", "r")
  })
  afterEach(() => {
    for (const parkedProcess of taken.splice(0)) parkedProcess[Symbol.dispose]()
    closeSync(interpreter)
  })
  const open = (handOver: HandOver): { parkedProcesses: ParkedProcesses; gone: number[] } => {
    const gone: number[] = []
    const homeNetwork = currentNetwork()
    const parkedProcesses = new ParkedProcesses({
      groups,
      homeNetwork,
      interpreter,
      users: undefined,
      handOver,
      gone: (parkedProcess) => gone.push(parkedProcess),
    })
    return { parkedProcesses, gone }
  }

  test("one that could not be made fails no call: the next one is taken", async () => {
    const { parkedProcesses, gone } = open(async (parkedProcess) => {
      if (parkedProcess <= 2) throw new Error("the host did not take it")
    })
    parkedProcesses.park()
    const offered = await parkedProcesses.take([])
    taken.push(offered)
    expect(offered.number).toBe(3)
    expect(gone).toEqual([1, 2])
  })

  test("those that died while they waited are not given out, and their handles are told to be of no use", async () => {
    const handed = new Map<number, number>()
    const { parkedProcesses, gone } = open(
      async (parkedProcess) => void handed.set(parkedProcess, (handed.get(parkedProcess) ?? 0) + 1),
    )
    const parkedShells = (): number[] =>
      descendants(process.pid)
        .map(({ pid }) => pid)
        .filter((pid) => commandOf(pid) === "/bin/sh\0-s\0")
    parkedProcesses.park()
    const handles = usualRoles.length
    await until(() => handed.get(1) === handles && handed.get(2) === handles, "two parked processes wait")
    // Their networks are there before each has become the shell that waits.
    await until(() => parkedShells().length === 2, "each of them is its shell")
    const waiting = parkedShells()
    for (const pid of waiting) process.kill(pid, "SIGKILL")
    await until(() => !waiting.some((pid) => existsSync(`/proc/${pid}`)), "they are gone, and that was noticed")
    const offered = await parkedProcesses.take([])
    taken.push(offered)
    expect(offered.number).toBe(3)
    expect(gone).toEqual([1, 2])
  })
})

test("a tree that the kernel does not let go of is waited for so long and no longer", async () => {
  const stuck = { processes: () => [2 ** 22 + 1] } as unknown as NonNullable<Parameters<typeof treeGone>[0]["group"]>
  expect(await treeGone({ group: stuck, network: { fd: -1 } }, undefined, 20)).toEqual({ gone: false })
})

test("a launcher's command line does not grow with the machine: it names the data folder and nothing else", async () => {
  const data = temporaryFolder("data")
  const launched = await launch(data)
  if ("ok" in launched) throw new Error(launched.message)
  const commands = descendants(launched.pid).map(({ pid }) => commandOf(pid))
  expect(commands.filter((command) => command.endsWith(`launcher.ts\0${data}\0`))).toHaveLength(1)
  expect(readFileSync(`/proc/${launched.pid}/cmdline`, "latin1").endsWith(`${data}\0`)).toBe(true)
  await launched.close()
  await until(() => descendants(launched.pid).length === 0, "the launcher is gone")
  removeFolder(data)
})
