/** MCP servers that are kept between calls: whose they are, what ends them, and what of them reaches a workspace. */
import { spawn } from "node:child_process"
import { randomUUID } from "node:crypto"
import { once } from "node:events"
import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, it } from "vitest"
import { until } from "../support/sealed.ts"
import { digestOfFolder } from "./host-world.ts"
import { keptDriver, keptSuite, serversOf } from "./kept-cases.ts"
import { openMcpWorld } from "./mcp-world.ts"

describe.each(["legacy", "modern"] as const)("a kept server of the %s era", (era) => keptSuite("namespace", era))

// Starts a program that reads the whole source, however busy the machine is.
const PATIENT = 240_000

it("a host that is killed while it keeps a server leaves neither a process nor a change", {
  timeout: PATIENT,
}, async () => {
  const tag = randomUUID()
  await using world = await openMcpWorld("legacy", { before: keptDriver(tag) })
  await world.host.close()
  const whole = digestOfFolder(world.workspace)
  const given = [world.data, world.workspace, world.manifests, join(world.folder, "caisson.yaml")]
  const child = spawn(process.execPath, [join(import.meta.dirname, "host-keeper.ts"), ...given], {
    stdio: ["ignore", "pipe", "inherit"],
  })
  await using _child = { [Symbol.asyncDispose]: async () => void child.kill("SIGKILL") }
  const [said] = (await once(child.stdout, "data")) as [Buffer]
  expect(JSON.parse(said.toString())).toMatchObject({ ok: true, value: "planted" })
  const [pid = 0] = serversOf(tag)
  process.kill(pid, "SIGUSR1")
  child.kill("SIGKILL")
  await once(child, "close")
  const isOurs = (name: string): boolean => {
    try {
      return /^\d+$/.test(name) && readFileSync(`/proc/${name}/cmdline`, "utf8").includes(world.data)
    } catch {
      return false
    }
  }
  await until(() => serversOf(tag).length === 0 && !readdirSync("/proc").some(isOurs), "nothing of it is alive")
  expect(digestOfFolder(world.workspace)).toBe(whole)
  await world.reopen()
  expect(await world.act("planted", [], {})).toMatchObject({ ok: true, value: "[]" })
})
