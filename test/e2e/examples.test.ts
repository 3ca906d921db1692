/** Each folder of examples/, run as its README says, with the sources of this clone. */
import { existsSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { execa } from "execa"
import { afterEach, beforeEach, expect, test } from "vitest"
import { createClient } from "../../src/client/index.ts"
import { testNeeding } from "../support/needing.ts"
import { type DaemonWorld, openDaemonWorld } from "./daemon-world.ts"

const examples = fileURLToPath(new URL("../../examples", import.meta.url))
const node = async (
  script: string,
  args: readonly string[],
  env: Readonly<Record<string, string>>,
): Promise<{ readonly stdout: string; readonly stderr: string }> => {
  const words = ["--conditions=caisson-source", join(examples, script), ...args]
  const { stdout, stderr } = await execa(process.execPath, words, { env, reject: false })
  return { stdout, stderr }
}

let world: DaemonWorld
beforeEach(async () => {
  world = await openDaemonWorld("", { manifests: [] })
  writeFileSync(join(world.workspace, "plan.txt"), "TODO: paint the hull\n")
})
afterEach(() => world[Symbol.asyncDispose]())

const tokens = async (): Promise<Readonly<Record<string, string>>> => {
  const local = createClient({ socket: world.daemon.socket })
  const agent = await local.tokens.create({ user: "ana", workspaces: [world.workspace] })
  const person = await local.tokens.create({ user: "ana", agent: false, workspaces: "any" })
  return { CAISSON_ADDRESS: world.address, AGENT_TOKEN: agent.token, PERSON_TOKEN: person.token }
}

test("the agent platform writes what the person approved of, after the diff was shown", async () => {
  const ended = await node("agent-platform/platform.ts", [world.workspace], { ...(await tokens()), APPROVE: "yes" })
  expect(ended.stderr).toContain("+- ./plan.txt:1:TODO: paint the hull")
  expect(ended.stdout).toBe("done: create open.md")
  expect(readFileSync(join(world.workspace, "open.md"), "utf8")).toContain("paint the hull")
})

test("the agent platform leaves what nobody approved of held, and the workspace as it was", async () => {
  const ended = await node("agent-platform/platform.ts", [world.workspace], await tokens())
  expect(ended.stdout).toBe("not done: approval_required")
  expect(() => readFileSync(join(world.workspace, "open.md"))).toThrow(/ENOENT/)
  expect(await createClient({ socket: world.daemon.socket }).approvals.list()).toHaveLength(1)
})

test("the test harness is green, and its driver red where it may do less", async () => {
  const ended = await execa(
    process.execPath,
    ["--test", "--test-reporter=tap", "--conditions=caisson-source", join(examples, "test-harness/harness.test.ts")],
    { reject: false, env: { NODE_OPTIONS: "" } },
  )
  expect(`${ended.stdout}\n${ended.stderr}`).toMatch(/^# pass 4$/m)
  expect(ended.exitCode).toBe(0)
})

const noNpm = existsSync("/usr/bin/npm")
  ? undefined
  : "there is no npm among the system's programs: `apt-get install npm`"
testNeeding(
  "the security review names all that the suspicious package tries, and nothing of its own files",
  noNpm,
  async () => {
    const env = { CAISSON_DATA: join(world.folder, "review"), CAISSON_NO_DAEMON: "1" }
    const ended = await node("security-review/review.ts", [join(examples, "security-review/suspicious")], env)
    const found = ended.stdout.split("\n").map((line) => line.replace(/\s+/g, " "))
    for (const line of [
      "writes .bashrc (create)",
      "dials collector.example.net",
      "reads /etc/shadow",
      "reads /root/.ssh/id_rsa",
      "starts /usr/bin/curl",
    ])
      expect(found).toContain(line)
    expect(ended.stdout).not.toContain("node_modules")
  },
)
