import { spawn } from "node:child_process"
import { once } from "node:events"
import { mkdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { expect, it } from "vitest"
import { removeFolder } from "../support/remove-folder.ts"
import { openFolder } from "./host-world.ts"

const root = join(import.meta.dirname, "../..")

it("`npm start` ends with the daemon, its address and a first token, and the daemon ends when it is told to", async () => {
  const folder = openFolder()
  const data = join(folder, "data")
  mkdirSync(data, { mode: 0o700 })
  writeFileSync(join(data, "caisson.yaml"), "serve: { listen: 127.0.0.1:0 }\n", { mode: 0o600 })
  const child = spawn(process.execPath, [join(root, "scripts/start.mjs")], {
    cwd: root,
    env: { ...process.env, CAISSON_DATA: data, CAISSON_NO_APT: "1" },
    stdio: ["ignore", "pipe", "pipe"],
  })
  const ended = once(child, "exit")
  let said = ""
  try {
    for (const stream of [child.stdout, child.stderr]) stream.on("data", (bytes: Buffer) => (said += bytes.toString()))
    await expect.poll(() => said, { timeout: 150_000 }).toMatch(/first token, told this once: csn_/)
    const address = /listens on (http:\/\/127\.0\.0\.1:[0-9]+)/.exec(said)?.[1] ?? ""
    const token = /csn_[A-Za-z0-9_-]+/.exec(said)?.[0] ?? ""
    const response = await fetch(`${address}/v1/calls`, {
      method: "POST",
      headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
      body: JSON.stringify({ tool: "json.query", input: { filter: ".a", document: { a: 1 } } }),
    })
    expect(await response.json()).toMatchObject({ ok: true, value: [1] })
  } finally {
    child.kill("SIGTERM")
  }
  expect(await ended).toEqual([0, null])
  removeFolder(folder)
})
