import { spawn } from "node:child_process"
import { generateKeyPairSync } from "node:crypto"
import {
  appendFileSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterEach, beforeEach, describe, expect, it } from "vitest"
import { auditAnchorFile, auditHeadFile, auditLogFile } from "../../../src/data-folder/paths.ts"
import { type EventDraft, sealEvent } from "../../../src/host/receipts/event.ts"
import { keysFromFile } from "../../../src/host/receipts/keys.ts"
import { openAuditLog } from "../../../src/host/receipts/log.ts"
import { readReceipts, verifyChain } from "../../../src/host/receipts/verify.ts"

let data: string
beforeEach(() => {
  data = mkdtempSync(join(tmpdir(), "caisson-log-"))
})
afterEach(() => rmSync(data, { recursive: true, force: true }))

const draft = (call: string): EventDraft => ({
  actor: { id: "alice" },
  action: "tool.invoked",
  subject: { kind: "tool", ref: "t@1" },
  metadata: { call },
})
const fill = async (count: number): Promise<void> => {
  await using log = openAuditLog(data)
  for (let n = 0; n < count; n += 1) await log.append(draft(`c${n}`))
}
const lines = (): string[] => readFileSync(auditLogFile(data), "utf8").trimEnd().split("\n")
const put = (changed: readonly string[]): void =>
  writeFileSync(auditLogFile(data), changed.map((line) => `${line}\n`).join(""))

const writer = (count: number, tag: string, padding = 0) => {
  const child = spawn(
    process.execPath,
    [join(import.meta.dirname, "append-many.ts"), data, String(count), tag, String(padding)],
    { stdio: ["ignore", "pipe", "inherit"] },
  )
  const ended = new Promise<number | null>((resolve) => child.on("close", (code) => resolve(code)))
  return { child, ended }
}

describe("the audit log", () => {
  it.each<[string, Partial<EventDraft>]>([
    ["a subject too long", { subject: { kind: "call", ref: "x".repeat(300) } }],
    ["a subject of half a character", { subject: { kind: "call", ref: `${"x".repeat(255)}\u{1f600}` } }],
    ["no subject", { subject: { kind: "tool", ref: "" } }],
    ["a path too long", { subject: { kind: "tool", ref: "t@1", path: `/${"x".repeat(2000)}` } }],
    ["an actor too long", { actor: { id: "a".repeat(300) } }],
    ["no actor", { actor: { id: "" } }],
  ])("writes nothing that it could not read: %s", async (_what, given) => {
    await fill(1)
    await using log = openAuditLog(data)
    await log.append({ ...draft("c"), ...given })
    await log.append(draft("d"))
    expect(await verifyChain(data)).toMatchObject({ ok: true, entries: 3 })
  })
  it("refuses an entry that has no form, and goes on", async () => {
    await using log = openAuditLog(data)
    await expect(log.append({ ...draft("c"), action: "Not An Action" })).rejects.toThrow("action")
    await log.append(draft("d"))
    expect(await verifyChain(data)).toMatchObject({ ok: true, entries: 1 })
  })
  it("chains entries from GENESIS with contiguous seq and verifies", async () => {
    await fill(3)
    const entries = lines().map((line) => JSON.parse(line) as { seq: number; prevHash: string; hash: string })
    expect(entries.map((entry) => entry.seq)).toEqual([0, 1, 2])
    expect(entries[0]?.prevHash).toBe("GENESIS")
    expect(entries[2]?.prevHash).toBe(entries[1]?.hash)
    expect(await verifyChain(data)).toEqual({ ok: true, entries: 3, head: `sha256:${entries[2]?.hash}`, notes: [] })
  })

  it("writes heads over the same two files, whole and of one length, and leaves a link in their way alone", async () => {
    const files = (): string[] =>
      [auditHeadFile(data), `${auditHeadFile(data)}.new`].map((file) => {
        const { ino, size, mode } = statSync(file)
        return `${ino} ${size} ${(mode & 0o777).toString(8)}`
      })
    await fill(2)
    const before = files().sort()
    await fill(3)
    expect(files().sort()).toEqual(before)
    expect(before.every((file) => file.endsWith(" 4096 600"))).toBe(true)
    expect(await verifyChain(data)).toMatchObject({ ok: true, entries: 5 })
    const outside = join(data, "outside")
    writeFileSync(outside, "kept")
    rmSync(`${auditHeadFile(data)}.new`)
    symlinkSync(outside, `${auditHeadFile(data)}.new`)
    await expect(fill(1)).rejects.toThrow("ELOOP")
    expect(readFileSync(outside, "utf8")).toBe("kept")
  })

  it("finds a chain that is absent, emptied or begun anew", async () => {
    expect(await verifyChain(data)).toMatchObject({ ok: false, code: "chain.absent" })
    await fill(3)
    const copy = readFileSync(auditLogFile(data), "utf8")
    rmSync(join(data, "audit"), { recursive: true })
    expect(await verifyChain(data)).toMatchObject({
      ok: false,
      code: "chain.absent",
      message: expect.stringContaining("3 entries were written"),
    })
    await fill(1)
    expect(await verifyChain(data)).toMatchObject({ ok: false, code: "chain.broken" })
    expect(readFileSync(auditLogFile(data), "utf8")).toContain("entries-missing")
    writeFileSync(auditLogFile(data), copy)
    expect((await verifyChain(data)).ok).toBe(false)
    writeFileSync(auditLogFile(data), "")
    expect((await verifyChain(data)).ok).toBe(false)
  })

  it("finds a copy of the head that was emptied or changed, so that it does not tell of a cut", async () => {
    await fill(2)
    const anchor = join(data, "keys", "audit-head.json")
    const text = readFileSync(anchor, "utf8")
    for (const changed of ["", "{}", text.replace('"seq":1', '"seq":0')]) {
      writeFileSync(anchor, changed)
      expect(await verifyChain(data)).toMatchObject({ ok: false, code: "signature.invalid" })
    }
    await fill(1)
    expect(await verifyChain(data)).toMatchObject({ ok: true })
  })

  it("holds a chain against a head and a key that were kept elsewhere", async () => {
    await fill(3)
    const [first] = readReceipts(data)
    const key = join(data, "audit", ".well-known", "governance-keys.json")
    const keys = keysFromFile(key)
    for (const head of [`sha256:${first?.hash}`, first?.hash ?? ""])
      expect(await verifyChain(data, { keys, head })).toMatchObject({ ok: true, entries: 3 })
    expect(await verifyChain(data, { head: "0".repeat(64) })).toMatchObject({ ok: false, code: "chain.broken" })
    const stranger = join(data, "stranger.pem")
    const { publicKey } = generateKeyPairSync("ed25519")
    writeFileSync(stranger, publicKey.export({ type: "spki", format: "pem" }))
    expect(await verifyChain(data, { keys: keysFromFile(stranger) })).toMatchObject({
      ok: false,
      code: "signature.invalid",
    })
    // Both log and key replaced: only what was kept elsewhere tells.
    rmSync(join(data, "audit"), { recursive: true })
    rmSync(join(data, "keys"), { recursive: true })
    await fill(3)
    expect(await verifyChain(data)).toMatchObject({ ok: true })
    expect(await verifyChain(data, { keys })).toMatchObject({ ok: false })
    expect(await verifyChain(data, { head: first?.hash ?? "" })).toMatchObject({ ok: false })
  })

  it("makes and writes nothing when it verifies", async () => {
    await fill(2)
    const listing = (): string[] =>
      readdirSync(data, { recursive: true, encoding: "utf8" })
        .sort()
        .map((name) => `${name} ${statSync(join(data, name)).ctimeMs}`)
    rmSync(join(data, "audit", ".lock"))
    const before = listing()
    expect(await verifyChain(data)).toMatchObject({ ok: true })
    expect(listing()).toEqual(before)
    const nowhere = join(data, "nowhere")
    expect(await verifyChain(nowhere)).toMatchObject({ ok: false, code: "chain.absent" })
    expect(existsSync(nowhere)).toBe(false)
  })

  it("goes on with the chain of an earlier process", async () => {
    await fill(2)
    await fill(2)
    expect(await verifyChain(data)).toMatchObject({ ok: true, entries: 4, notes: [] })
  })

  it("finds the entries of one call", async () => {
    await fill(3)
    expect(readReceipts(data, { call: "c1" }).map((event) => event.seq)).toEqual([1])
    expect(readReceipts(data)).toHaveLength(3)
  })

  it("keeps the private key from everybody but its owner", async () => {
    await fill(1)
    expect(statSync(join(data, "keys", "audit-ed25519.pem")).mode & 0o777).toBe(0o600)
    expect(statSync(auditLogFile(data)).mode & 0o777).toBe(0o600)
    expect(readFileSync(join(data, "audit", ".well-known", "governance-keys.json"), "utf8")).not.toContain("PRIVATE")
  })

  it("keeps one chain when several processes write at once", async () => {
    const writers = ["a", "b", "c"].map((tag) => writer(20, tag))
    await fill(20)
    expect(await Promise.all(writers.map((one) => one.ended))).toEqual([0, 0, 0])
    expect(await verifyChain(data)).toMatchObject({ ok: true, entries: 80, notes: [] })
    expect(new Set(readReceipts(data).map((event) => event.metadata?.["call"])).size).toBe(80)
  })

  it("keeps every acknowledged entry when writers are killed in the middle of appends", async () => {
    for (let round = 0; round < 6; round += 1) {
      const { child, ended } = writer(10_000, `k${round}`, 20_000)
      let seen = ""
      await new Promise<void>((resolve) => {
        child.stdout.on("data", (chunk: Buffer) => {
          seen += chunk.toString()
          if (seen.split("\n").length > 3 + round) resolve()
        })
      })
      child.kill("SIGKILL")
      await ended
      const acknowledged = seen.split("\n").length - 1
      expect(await verifyChain(data)).toMatchObject({ ok: true })
      await fill(1)
      expect(await verifyChain(data)).toMatchObject({ ok: true })
      const kept = readReceipts(data).filter((event) => event.actor.id === `k${round}`).length
      expect(kept).toBeGreaterThanOrEqual(acknowledged)
    }
  })

  /** How the last append was begun: its head lies in the other of the two files. */
  const begun = (): string => readFileSync(`${auditHeadFile(data)}.new`, "utf8")
  const atOnce = async (calls: readonly string[]): Promise<void> => {
    await using log = openAuditLog(data)
    const events = await Promise.all(calls.map((call) => log.append(draft(call))))
    expect(events.map((event) => event?.metadata?.["call"])).toEqual(calls)
  }

  it("appends at once what comes at once, in the order it came", async () => {
    await fill(1)
    const calls = Array.from({ length: 20 }, (_, n) => `g${n}`)
    await atOnce(calls)
    expect((JSON.parse(begun()) as { head: { between: string[] } }).head.between).toHaveLength(19)
    expect(readReceipts(data).map(({ metadata }) => metadata?.["call"])).toEqual(["c0", ...calls])
    expect(await verifyChain(data)).toMatchObject({ ok: true, entries: 21, notes: [] })
  })

  it("knows how far a writer came that was stopped in the middle of several entries, and nobody else's entry among them", async () => {
    await fill(2)
    await atOnce(["a", "b", "c", "d"])
    const all = lines()
    writeFileSync(auditHeadFile(data), begun())
    const anchor = readFileSync(auditAnchorFile(data))
    rmSync(auditAnchorFile(data))
    for (const left of [2, 3, 5]) {
      put(all.slice(0, left))
      expect(await verifyChain(data)).toMatchObject({
        ok: true,
        entries: left,
        notes: [expect.stringContaining("stopped")],
      })
    }
    const { hash: prevHash, seq, ts } = JSON.parse(all[2] as string) as { hash: string; seq: number; ts: string }
    const forged = sealEvent(draft("x"), { seq: seq + 1, prevHash, ts })
    put([...all.slice(0, 3), forged.line.trimEnd()])
    expect(await verifyChain(data)).toMatchObject({ ok: false, code: "chain.broken" })
    put(all.slice(0, 4))
    await fill(1)
    expect(await verifyChain(data)).toMatchObject({ ok: true, entries: 5, notes: [] })
    // Acknowledged, they may not be missing.
    writeFileSync(auditAnchorFile(data), anchor)
    expect(await verifyChain(data)).toMatchObject({ ok: false })
  })

  it("leaves an entry out whose guard says no by then, and appends those beside it", async () => {
    await using log = openAuditLog(data)
    let isThere = true
    const guard = { still: () => isThere, after: () => void (isThere = false) }
    const told = await Promise.all([
      log.append(draft("a")),
      log.append(draft("b"), guard),
      log.append(draft("c"), guard),
      log.append(draft("d")),
    ])
    expect(told.map((event) => event?.metadata?.["call"])).toEqual(["a", "b", undefined, "d"])
    expect(await verifyChain(data)).toMatchObject({ ok: true, entries: 3 })
  })

  it("cuts a torn last line off and records that it did", async () => {
    await fill(2)
    // a writer killed inside its write leaves the head at `appending`; the torn bytes follow the last whole line
    const torn = '{"$schema":"agentgov'
    appendFileSync(auditLogFile(data), torn)
    await fill(1)
    const notes = lines()
      .map((line) => JSON.parse(line) as { action: string; metadata: Record<string, unknown> })
      .filter((entry) => entry.action === "audit.note")
    expect(notes).toHaveLength(1)
    expect(notes[0]?.metadata).toMatchObject({ repair: "torn-line", bytes: torn.length })
    expect(await verifyChain(data)).toMatchObject({ ok: true, entries: 4 })
  })
})

describe("verifyChain", () => {
  beforeEach(() => fill(5))

  it.each([
    [
      "a changed field",
      (all: string[]) => all.with(2, (all[2] as string).replace("alice", "mallory")),
      3,
      "chain.tampered",
    ],
    [
      "a changed hash",
      (all: string[]) => all.with(2, (all[2] as string).replace(/"hash":"./, '"hash":"z')),
      3,
      "schema.invalid",
    ],
    ["a removed line in the middle", (all: string[]) => all.toSpliced(2, 1), 3, "chain.seq_gap"],
    ["a removed first line", (all: string[]) => all.slice(1), 1, "chain.seq_gap"],
    [
      "two lines swapped",
      (all: string[]) => all.with(1, all[2] as string).with(2, all[1] as string),
      2,
      "chain.seq_gap",
    ],
    ["a repeated line", (all: string[]) => all.toSpliced(2, 0, all[1] as string), 3, "chain.seq_gap"],
    ["a line that is not JSON", (all: string[]) => all.with(3, "nonsense"), 4, "schema.invalid"],
    [
      "an unknown field",
      (all: string[]) => all.with(3, (all[3] as string).replace("{", '{"aaa":1,')),
      4,
      "schema.invalid",
    ],
    [
      "the same content in other bytes",
      (all: string[]) => all.with(3, (all[3] as string).replace(":", ": ")),
      4,
      "chain.tampered",
    ],
    [
      "a hidden duplicate key",
      (all: string[]) => all.with(3, (all[3] as string).replace('"seq":3', '"seq":9,"seq":3')),
      4,
      "chain.tampered",
    ],
    ["the last line cut off", (all: string[]) => all.slice(0, 4), 5, "chain.broken"],
    ["all lines cut off", () => [], 1, "chain.broken"],
  ] as const)("names the line of %s", async (_what, change, line, code) => {
    put(change(lines()))
    expect(await verifyChain(data)).toMatchObject({ ok: false, line, code })
  })

  it("finds a rewritten history whose hashes were all recomputed", async () => {
    const other = mkdtempSync(join(tmpdir(), "caisson-log-"))
    try {
      await using log = openAuditLog(other)
      for (let n = 0; n < 5; n += 1) await log.append(draft(`forged${n}`))
      writeFileSync(auditLogFile(data), readFileSync(auditLogFile(other)))
      expect(await verifyChain(data)).toMatchObject({ ok: false, line: 5, code: "signature.invalid" })
      writeFileSync(auditHeadFile(data), readFileSync(auditHeadFile(other)))
      expect(await verifyChain(data)).toMatchObject({ ok: false, code: "signature.invalid" })
      const keys = join("audit", ".well-known", "governance-keys.json")
      writeFileSync(join(data, keys), readFileSync(join(other, keys)))
      expect(await verifyChain(data)).toMatchObject({ ok: false, code: "signature.invalid" })
    } finally {
      rmSync(other, { recursive: true, force: true })
    }
  })

  it("finds entries added without the key", async () => {
    const head = readFileSync(auditHeadFile(data))
    await fill(1)
    writeFileSync(auditHeadFile(data), head)
    expect(await verifyChain(data)).toMatchObject({ ok: false, line: 6, code: "signature.invalid" })
  })

  it("finds a head pointer that is gone or was changed by hand", async () => {
    writeFileSync(auditHeadFile(data), readFileSync(auditHeadFile(data), "utf8").replace('"seq":4', '"seq":3'))
    expect(await verifyChain(data)).toMatchObject({ ok: false, code: "signature.invalid" })
    rmSync(auditHeadFile(data))
    expect(await verifyChain(data)).toMatchObject({ ok: false, code: "signature.invalid" })
  })

  it("does not let the next append paper over a cut-off end", async () => {
    put(lines().slice(0, 3))
    await fill(1)
    expect(await verifyChain(data)).toMatchObject({
      ok: false,
      line: 4,
      code: "chain.broken",
      message: expect.stringContaining("entries-missing"),
    })
  })
})
