/**
 * Every operation of the document, with requests drawn from its schemas and bent ones, from an operator, a person and an agent.
 * `CAISSON_FUZZ_RUNS` makes more of them, `CAISSON_FUZZ_SEED` the same again.
 */
import { join } from "node:path"
import fc from "fast-check"
import { afterAll, beforeAll, expect, it } from "vitest"
import type { OpenApi } from "../../scripts/client-types.ts"
import { verifyChain } from "../../src/host/index.ts"
import { type Judge, judgeBy } from "./daemon-judge.ts"
import { type Drawn, requestsOf } from "./daemon-requests.ts"
import { type DaemonWorld, openDaemonWorld } from "./daemon-world.ts"
import { patience } from "../support/patience.ts"

const runs = Number(process.env["CAISSON_FUZZ_RUNS"] ?? 500)
const seed = process.env["CAISSON_FUZZ_SEED"]
/** No request that is drawn here has work for so long. */
const HANGS_MS = 45_000 * patience
const root = join(import.meta.dirname, "../..")

let world: DaemonWorld
let document: OpenApi
let judge: Judge
let voices: readonly string[]
const faults: unknown[] = []
beforeAll(async () => {
  world = await openDaemonWorld("", { onFault: (error) => void faults.push(error) })
  document = (await world.local("GET", "/openapi.json")).body as unknown as OpenApi
  judge = judgeBy(document)
  const tokenFor = async (options: object): Promise<string> => {
    const made = await world.daemon.host.tokens.issue({ workspaces: [world.workspace], ...options })
    if (!made.ok) throw new Error(made.error.message)
    return made.value.token
  }
  voices = [
    await tokenFor({ user: "alice", agent: false, roles: ["caller", "approver", "operator", "act-for"] }),
    await tokenFor({ user: "alice", agent: false }),
    await tokenFor({ user: "bob" }),
  ]
})
afterAll(() => world[Symbol.asyncDispose]())

/** What an answer may not be, whatever was asked. */
const faultIn = (drawn: Drawn, status: number, type: string, text: string): string | undefined => {
  const { method, path } = drawn
  const fault = judge({ method, path, status, type, text })
  if (fault !== undefined) return fault
  // Ends of calls have statuses of their own; the daemon itself fails over nothing.
  const isCalls = ["makeCall", "decideApproval"].includes(drawn.operationId) && type.startsWith("application/json")
  if (status >= 500 && !(isCalls && [502, 503, 504].includes(status))) return `a failure of the daemon's: ${text}`
  if (isCalls && text.includes('"code":"internal"')) return `a failure of the host's: ${text}`
  const isProblem = type.startsWith("application/problem+json")
  const leak = [world.data, root, "node_modules", "file://", ".ts:"].find((word) => text.includes(word))
  if (isProblem && leak !== undefined) return `a word of the host's own, ${leak}: ${text}`
  return isProblem && /\\n\s+at /.test(text) ? `a stack: ${text}` : undefined
}

it("fails over no request, says of each what the document says, and nothing of the host's own", {
  timeout: (240_000 + runs * 1_500) * patience,
}, async () => {
  const held = await world.local("POST", "/v1/calls", {
    tool: "fixture.act",
    input: { verb: "write", args: ["notes/f.txt", "x"] },
    workspace: world.workspace,
  })
  const spare = await world.daemon.host.tokens.issue({ workspaces: "any", label: "to be revoked" })
  const acts = fc.record({
    tool: fc.constantFrom("fixture.act", "fixture.act@1"),
    input: fc.record({
      verb: fc.constantFrom("print", "write", "remove", "fail", "nonsense"),
      args: fc.array(fc.constantFrom("1", "notes/a.txt", "elsewhere.txt", "../out", ""), { maxLength: 3 }),
    }),
    workspace: fc.constantFrom(world.workspace, join(world.workspace, "notes"), "/", "/nowhere"),
  })
  const known = fc.constantFrom(
    ...["json.query", "fixture.act", "json.query@1", "jq", "actor", "jq@1", "yes", "respond-async", "alice", "key"],
    ...[world.workspace, "/", "0", "7", String(held.body["call"]), spare.ok ? spare.value.id : "none"],
  )
  const drawn = requestsOf(document, { known, bodies: { makeCall: acts, explainCall: acts } })
  const asked = new Map<string, number>()
  await fc.assert(
    fc.asyncProperty(drawn, fc.constantFrom(...voices), async (one, token) => {
      const isJson = one.body === undefined ? {} : { "content-type": "application/json" }
      const answer = await fetch(world.address + one.path, {
        method: one.method,
        headers: { ...isJson, ...one.headers, authorization: `Bearer ${token}` },
        ...(one.body === undefined || one.method === "GET" ? {} : { body: one.body }),
        signal: AbortSignal.timeout(HANGS_MS),
      })
      const text = await answer.text()
      const fault = faultIn(one, answer.status, answer.headers.get("content-type") ?? "", text)
      const what = `${one.operationId} ${answer.status >= 400 ? "refused" : "served"}`
      asked.set(what, (asked.get(what) ?? 0) + 1)
      if (fault !== undefined) throw new Error(fault)
    }),
    { numRuns: runs, endOnFailure: true, ...(seed === undefined ? {} : { seed: Number(seed) }) },
  )
  expect(faults).toEqual([])
  // It is worth something: every operation was asked, and what needs no luck was served too.
  const names = Object.values(document.paths).flatMap((methods) => Object.values(methods).map((one) => one.operationId))
  const isAsked = (name: string): boolean => asked.has(`${name} served`) || asked.has(`${name} refused`)
  expect(names.filter((name) => !isAsked(name))).toEqual([])
  expect(names.filter((name) => asked.has(`${name} served`)).length).toBeGreaterThan(8)
  expect((await world.local("GET", "/healthz")).status).toBe(200)
  expect(await verifyChain(world.data)).toMatchObject({ ok: true })
})
