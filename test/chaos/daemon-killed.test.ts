/**
 * A daemon that is killed at random moments under load, against a model of what it has said: on SQLite, and on a PostgreSQL
 * that lives on. `CAISSON_CHAOS_KILLS=50`.
 */
import { type ChildProcess, spawn } from "node:child_process"
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs"
import { once } from "node:events"
import { join } from "node:path"
import { expect, it } from "vitest"
import { callsFolder, daemonSocket } from "../../src/data-folder/paths.ts"
import { readReceipts, verifyChain } from "../../src/host/index.ts"
import { type Answer, askLocally } from "../e2e/daemon-world.ts"
import { openFolder } from "../e2e/host-world.ts"
import { describeNeeding } from "../support/needing.ts"
import { patience } from "../support/patience.ts"
import { removeFolder } from "../support/remove-folder.ts"
import { noPostgres, startPostgresServer } from "../support/servers/postgres.ts"

const kills = Number(process.env["CAISSON_CHAOS_KILLS"] ?? 3)
const CLIENTS = 6

/** One file that one call appends one letter to. */
interface Made {
  readonly file: string
  readonly how: "keyed" | "unkeyed" | "later" | "held"
  readonly key?: string
  /** what was heard of it before the kill */
  heard: "nothing" | "later" | "held" | "committed" | "refused"
  call?: string
  /** an approval was sent */
  decided?: boolean
}

class Place implements Disposable {
  readonly folder = openFolder()
  readonly data = join(this.folder, "data")
  readonly workspace = join(this.folder, "work")
  readonly config = join(this.folder, "caisson.yaml")
  constructor(config: string) {
    mkdirSync(join(this.workspace, "notes"), { recursive: true })
    writeFileSync(this.config, config, { mode: 0o600 })
  }
  async start(): Promise<ChildProcess> {
    const fixture = join(import.meta.dirname, "fixtures/dying-daemon.ts")
    const child = spawn(process.execPath, [fixture, this.data, this.config], { stdio: ["ignore", "pipe", "inherit"] })
    await Promise.race([
      once(child.stdout as NodeJS.ReadableStream, "data"),
      once(child, "exit").then(() => {
        throw new Error("the daemon did not start")
      }),
    ])
    return child
  }
  ask(method: string, path: string, body?: unknown, headers?: Readonly<Record<string, string>>): Promise<Answer> {
    return askLocally(daemonSocket(this.data))(method, path, body, headers)
  }
  make(made: Made): Promise<Answer> {
    const input = { verb: "append", args: [`notes/${made.file}`, "x"] }
    return this.ask(
      "POST",
      "/v1/calls",
      { tool: "fixture.act", input, workspace: this.workspace },
      {
        ...(made.how === "held" ? {} : { "caisson-approved": "yes" }),
        ...(made.key === undefined ? {} : { "idempotency-key": made.key }),
        ...(made.how === "later" ? { prefer: "respond-async" } : {}),
      },
    )
  }
  content(made: Made): string {
    const file = join(this.workspace, "notes", made.file)
    return existsSync(file) ? readFileSync(file, "utf8") : ""
  }
  /** Processes that were started on these folders, but for this one's own children. */
  processes(): string[] {
    return readdirSync("/proc").filter((pid) => {
      if (!/^\d+$/.test(pid) || pid === String(process.pid)) return false
      try {
        return readFileSync(`/proc/${pid}/cmdline`, "utf8").includes(this.folder)
      } catch {
        return false
      }
    })
  }
  mounts(): string[] {
    return readFileSync("/proc/self/mounts", "utf8")
      .split("\n")
      .filter((line) => line.includes(this.folder))
  }
  [Symbol.dispose](): void {
    removeFolder(this.folder)
  }
}

/** Where it could not be, the answer says why, and there is nothing to approve. */
const isHeld = (body: Answer["body"]): boolean => body["approval"] !== undefined

const note = (made: Made, answer: Answer): void => {
  const { status, body } = answer
  if (typeof body["call"] === "string") made.call = body["call"]
  const error = body["error"] as { code?: string; details?: { commit?: string } } | undefined
  if (status === 202) made.heard = "later"
  else if (status === 200) made.heard = "committed"
  else if (error?.code === "approval_required") made.heard = isHeld(body) ? "held" : "refused"
  else if (error?.details?.commit === "unknown") made.heard = "nothing"
  else made.heard = "refused"
}

let count = 0
const WAYS: readonly Made["how"][] = ["keyed", "unkeyed", "later", "held"]
const next = (): Made => {
  count += 1
  const how = WAYS[Math.floor(Math.random() * WAYS.length)] ?? "keyed"
  const isKeyed = how === "keyed" || (how === "later" && count % 2 === 0)
  return { file: `f${count}.txt`, how, heard: "nothing", ...(isKeyed ? { key: `key-${count}` } : {}) }
}

/** Until the daemon is gone, or it is enough: calls, and approvals of what is held. */
const client = async (place: Place, all: Made[], enough?: AbortSignal): Promise<void> => {
  try {
    while (enough?.aborted !== true) {
      const made = next()
      all.push(made)
      note(made, await place.make(made))
      if (made.heard !== "held" || Math.random() < 0.4) continue
      made.decided = true
      const answer = await place.ask("POST", `/v1/approvals/${made.call}`, { decision: "approve" })
      if (answer.status === 200) made.heard = "committed"
    }
  } catch (error) {
    // It was killed, where that is what was done to it.
    if (enough !== undefined) throw error
  }
}

/** What the next daemon must say of one, and what must be in the workspace. */
const settle = async (place: Place, made: Made): Promise<void> => {
  const of = JSON.stringify(made)
  expect([of, ["", "x"].includes(place.content(made))]).toEqual([of, true])
  if (made.heard === "committed") return expect([of, place.content(made)]).toEqual([of, "x"])
  if (made.heard === "refused") return expect([of, place.content(made)]).toEqual([of, ""])
  if (made.heard === "held") {
    const held = await place.ask("GET", `/v1/approvals/${made.call}`)
    if (made.decided !== true) expect([of, held.status, held.body["intact"]]).toEqual([of, 200, true])
    // A decision that was not heard of may have been made.
    const answer = await place.ask("POST", `/v1/approvals/${made.call}`, { decision: "approve" })
    if (answer.status !== 200) expect([of, made.decided, answer.status]).toEqual([of, true, answer.status])
    made.heard = "committed"
    return expect([of, place.content(made)]).toEqual([of, "x"])
  }
  if (made.heard === "later") {
    const look = (): Promise<Answer> => place.ask("GET", `/v1/calls/${made.call}`)
    const state = async (): Promise<unknown> => {
      const { status, body } = await look()
      return [of, status, body["state"]]
    }
    // Where nothing was killed it may still run, or wait to be kept.
    await expect.poll(state, { timeout: 60_000 }).toEqual([of, 200, "settled"])
    const told = await look()
    const envelope = told.body["envelope"] as { ok: boolean; error?: { code: string; details: object } }
    if (envelope.ok) expect([of, place.content(made)]).toEqual([of, "x"])
    else
      expect([of, envelope.error]).toEqual([
        of,
        expect.objectContaining({ code: "timeout", details: { commit: "unknown" } }),
      ])
  }
  if (made.key === undefined) return
  const before = place.content(made)
  const again = await place.make({ ...made, how: "keyed" })
  const after = place.content(made)
  const { ok, error } = again.body as { ok?: boolean; error?: { code: string } }
  // Made now, answered from what is on record, or not known; never twice.
  if (ok === true) expect([of, after]).toEqual([of, "x"])
  else expect([of, error?.code, after]).toEqual([of, "timeout", before])
  const third = await place.make({ ...made, how: "keyed" })
  expect([of, third.body["call"], place.content(made)]).toEqual([of, again.body["call"], after])
  made.heard = after === "x" ? "committed" : "refused"
}

const killed = async (config: string): Promise<void> => {
  using place = new Place(config)
  const known: Made[] = []
  let child = await place.start()
  for (let kill = 0; kill < kills; kill += 1) {
    const all: Made[] = []
    const clients = Array.from({ length: CLIENTS }, () => client(place, all))
    // From the first answer on, so that a slow machine is killed at work as well.
    await expect.poll(() => all.length, { timeout: 60_000, interval: 10 }).toBeGreaterThan(CLIENTS)
    await new Promise((resolve) => setTimeout(resolve, Math.random() * 1_500))
    const gone = once(child, "exit")
    child.kill("SIGKILL")
    await gone
    await Promise.all(clients)
    expect(existsSync(daemonSocket(place.data))).toBe(true)
    child = await place.start()
    // The first call of a host closes what a dead one left open.
    await place.ask("POST", "/v1/calls", {
      tool: "fixture.act",
      input: { verb: "print", args: ["1"] },
      workspace: place.workspace,
    })
    for (const made of all) await settle(place, made)
    known.push(...all)
    expect(await verifyChain(place.data), `kill ${kill}`).toMatchObject({ ok: true })
  }
  for (const made of known)
    if (made.heard === "committed") expect([made.file, place.content(made)]).toEqual([made.file, "x"])
  const receipts = readReceipts(place.data).filter(({ action }) => action === "tool.invoked")
  const recorded = new Set(receipts.map(({ metadata }) => metadata?.["call"]))
  expect(known.filter(({ call }) => call !== undefined && call !== "none" && !recorded.has(call))).toEqual([])
  const gone = once(child, "exit")
  child.kill("SIGKILL")
  await gone
  await expect.poll(() => place.processes(), { timeout: 30_000 }).toEqual([])
  expect(place.mounts()).toEqual([])
  expect(readdirSync(callsFolder(place.data))).toEqual([])
}

const says = "loses nothing that it said, does nothing twice, and leaves nothing"
const options = { timeout: (120_000 + kills * 60_000) * patience }
it(`a daemon killed ${kills} times under load ${says}`, options, () => killed(""))

describeNeeding("on a PostgreSQL", noPostgres, () => {
  it(`a daemon killed ${kills} times under load ${says}`, options, async () => {
    await using server = await startPostgresServer()
    const file = join(server.folder, "url")
    writeFileSync(file, `${await server.database()}\n`, { mode: 0o600 })
    await killed(`store: { postgres: { url_file: ${file} } }\n`)
  })

  it(
    `a daemon whose PostgreSQL is stopped and started ${kills} times under load says so, stays up, goes on by itself, and ${says}`,
    options,
    async () => {
      await using server = await startPostgresServer()
      const file = join(server.folder, "url")
      writeFileSync(file, `${await server.database()}\n`, { mode: 0o600 })
      using place = new Place(`store: { postgres: { url_file: ${file} } }\n`)
      const child = await place.start()
      const ready = async (): Promise<unknown> => {
        const { status, body } = await place.ask("GET", "/healthz?ready")
        return [status, (body["causes"] as { cause: string }[] | undefined)?.map(({ cause }) => cause)]
      }
      for (let stop = 0; stop < kills; stop += 1) {
        const all: Made[] = []
        const enough = new AbortController()
        const clients = Array.from({ length: CLIENTS }, () => client(place, all, enough.signal))
        await expect.poll(() => all.length, { timeout: 60_000, interval: 10 }).toBeGreaterThan(CLIENTS)
        await server.stop(stop % 2 === 0 ? "SIGQUIT" : "SIGINT")
        await expect.poll(ready, { timeout: 60_000 }).toEqual([503, ["store_unusable"]])
        await server.start()
        await expect.poll(ready, { timeout: 60_000 }).toEqual([200, []])
        const before = all.length
        await expect.poll(() => all.length, { timeout: 60_000 }).toBeGreaterThan(before + CLIENTS)
        enough.abort()
        await Promise.all(clients)
        expect(child.exitCode).toBeNull()
        for (const made of all) await settle(place, made)
        expect(await verifyChain(place.data), `stop ${stop}`).toMatchObject({ ok: true })
      }
      const gone = once(child, "exit")
      child.kill("SIGKILL")
      await gone
      await expect.poll(() => place.processes(), { timeout: 30_000 }).toEqual([])
      expect(place.mounts()).toEqual([])
    },
  )
})
