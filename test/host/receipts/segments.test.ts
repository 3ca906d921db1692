import { spawn } from "node:child_process"
import {
  cpSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterEach, beforeEach, describe, expect, it } from "vitest"
import { auditFolder, auditLogFile, auditSegmentsFolder } from "../../../src/data-folder/paths.ts"
import { exportedLines } from "../../../src/host/questions/receipts.ts"
import { openReceiptIndex } from "../../../src/host/receipts/index-file.ts"
import { openAuditLog } from "../../../src/host/receipts/log.ts"
import { readReceipts, verifyChain } from "../../../src/host/receipts/verify.ts"

const SMALL = 2_000
let data: string
beforeEach(() => {
  data = mkdtempSync(join(tmpdir(), "caisson-parts-"))
})
afterEach(() => rmSync(data, { recursive: true, force: true }))

const fill = async (
  count: number,
  { from = 0, ...options }: { from?: number; segmentBytes?: number; keepMs?: number } = {},
) => {
  await using log = openAuditLog(data, { segmentBytes: SMALL, ...options })
  for (let n = from; n < from + count; n += 1)
    await log.append({
      actor: { id: "alice" },
      action: "tool.invoked",
      subject: { kind: "tool", ref: "t@1" },
      metadata: { call: `c${n}`, user_id: "alice" },
    })
}
const parts = (): readonly string[] =>
  readdirSync(auditSegmentsFolder(data))
    .filter((name) => name.endsWith(".jsonl"))
    .sort()
const partFile = (index: number, ending = ".jsonl"): string =>
  join(auditSegmentsFolder(data), (parts().at(index) ?? "none").replace(".jsonl", ending))
const calls = (): readonly unknown[] => readReceipts(data).flatMap(({ metadata }) => metadata?.["call"] ?? [])
const named = (count: number, from = 0): readonly string[] => Array.from({ length: count }, (_, n) => `c${from + n}`)

const linesOfExport = async (): Promise<readonly string[]> => {
  const lines: string[] = []
  for await (const line of exportedLines(data)) lines.push(line)
  return lines
}

describe("a log that is full", () => {
  it("is closed as a part, as often as need be, and stays one chain that is read, asked and exported whole", async () => {
    await fill(20)
    expect(parts().length).toBeGreaterThan(2)
    expect(await verifyChain(data)).toMatchObject({ ok: true, entries: 20, notes: [] })
    expect(calls()).toEqual(named(20))
    using index = openReceiptIndex(data, "shared")
    const found = await index.find({}, { limit: 100 })
    expect(found?.entries.map(({ metadata }) => metadata?.["call"])).toEqual([...named(20)].reverse())
    await fill(9, { from: 20 })
    const more = await index.find({}, { limit: 100 })
    expect(more?.entries.map(({ metadata }) => metadata?.["call"])).toEqual([...named(29)].reverse())
    const files = [...parts().map((name) => join(auditSegmentsFolder(data), name)), auditLogFile(data)]
    const exported = await linesOfExport()
    expect(exported.join("")).toBe(files.map((file) => readFileSync(file, "utf8")).join(""))
    for (const name of readdirSync(auditSegmentsFolder(data)))
      expect(statSync(join(auditSegmentsFolder(data), name)).mode & 0o777).toBe(0o600)
  })

  it("is closed by whichever process comes to it, and none writes into a part that another closed", async () => {
    const writer = (tag: string): Promise<number | null> =>
      new Promise((resolve) =>
        spawn(process.execPath, [join(import.meta.dirname, "append-many.ts"), data, "15", tag, "0", String(SMALL)], {
          stdio: ["ignore", "ignore", "inherit"],
        }).on("close", resolve),
      )
    expect(await Promise.all(["a", "b", "c"].map(writer))).toEqual([0, 0, 0])
    expect(await verifyChain(data)).toMatchObject({ ok: true, entries: 45 })
    expect(new Set(calls()).size).toBe(45)
    expect(parts().length).toBeGreaterThan(2)
  })

  it("keeps every entry that was acknowledged when its writers are killed, however often it is closed", async () => {
    const told: string[] = []
    for (let round = 0; round < 8; round += 1) {
      const child = spawn(
        process.execPath,
        [join(import.meta.dirname, "append-many.ts"), data, "1000", `r${round}`, "0", "1200"],
        { stdio: ["ignore", "pipe", "inherit"] },
      )
      let said = ""
      child.stdout.on("data", (piece: Buffer) => {
        said += piece.toString()
        if (said.split("\n").length > 5 + round * 3) child.kill("SIGKILL")
      })
      await new Promise((resolve) => child.on("close", resolve))
      told.push(
        ...said
          .split("\n")
          .slice(0, -1)
          .map((n) => `r${round}-${n}`),
      )
    }
    await fill(1)
    expect(await verifyChain(data)).toMatchObject({ ok: true })
    const kept = new Set(calls())
    expect(told.filter((call) => !kept.has(call))).toEqual([])
    expect(told.length).toBeGreaterThan(40)
  })

  it("goes on where its writer died between the head of a part and moving it, or before it began the next", async () => {
    await fill(20)
    const last = parts().at(-1) ?? ""
    const size = parts().length
    // The head is there, and the part was not moved: what came after it was never written.
    const [moved, log] = [join(auditSegmentsFolder(data), last), auditLogFile(data)]
    const whole = readFileSync(log)
    rmSync(log)
    expect((await verifyChain(data)).ok, "the entries of the log are missed").toBe(false)
    writeFileSync(log, whole)
    cpSync(data, `${data}-copy`, { recursive: true })
    try {
      writeFileSync(log, Buffer.concat([readFileSync(moved), whole]))
      rmSync(moved)
      expect(await verifyChain(data)).toMatchObject({ ok: true, entries: 20 })
      expect(calls()).toEqual(named(20))
      await fill(1, { from: 20 })
      expect(await verifyChain(data)).toMatchObject({ ok: true, entries: 21 })
      expect(parts()).toHaveLength(size)
    } finally {
      rmSync(`${data}-copy`, { recursive: true, force: true })
    }
  })

  it("goes on after the parts where the next one holds nothing yet", async () => {
    await fill(1, { segmentBytes: 1 })
    await fill(1, { from: 1, segmentBytes: 1 })
    // As after a crash between moving the log and the first entry of the next.
    const line = readFileSync(auditLogFile(data), "utf8")
    expect(parts()).toHaveLength(1)
    expect(line).toContain('"c1"')
    await fill(3, { from: 2, segmentBytes: 1 })
    expect(await verifyChain(data)).toMatchObject({ ok: true, entries: 5 })
    expect(calls()).toEqual(named(5))
  })
})

describe("the parts of a chain", () => {
  // biome-ignore format: a table reads by rows
  const attacks: readonly (readonly [string, () => void])[] = [
    ["the first is taken away", () => rmSync(partFile(0))],
    ["one in the middle is taken away", () => rmSync(partFile(1))],
    ["the last is taken away", () => rmSync(partFile(-1))],
    ["the first is taken away with its head", () => ["jsonl", "head.json"].forEach((end) => rmSync(partFile(0).replace("jsonl", end)))],
    ["one in the middle is taken away with its head", () => ["head.json", "jsonl"].forEach((end) => rmSync(partFile(1).replace("jsonl", end)))],
    ["the last is taken away with its head", () => ["head.json", "jsonl"].forEach((end) => rmSync(partFile(-1).replace("jsonl", end)))],
    ["all are taken away", () => rmSync(auditSegmentsFolder(data), { recursive: true })],
    ["a head is taken away", () => rmSync(partFile(1, ".head.json"))],
    ["a head is another's", () => cpSync(partFile(0, ".head.json"), partFile(1, ".head.json"))],
    ["a head was changed", () => writeFileSync(partFile(1, ".head.json"), readFileSync(partFile(1, ".head.json"), "utf8").replace(/"seq":\d+/, '"seq":99'))],
    ["a part is cut", () => truncateSync(partFile(1), statSync(partFile(1)).size - 10)],
    ["a part lost its last line", () => writeFileSync(partFile(1), readFileSync(partFile(1), "utf8").trimEnd().split("\n").slice(0, -1).map((line) => `${line}\n`).join(""))],
    ["an entry was changed", () => writeFileSync(partFile(1), readFileSync(partFile(1), "utf8").replace("alice", "mallo"))],
    ["two changed places", () => { renameSync(partFile(0), `${data}/x`); renameSync(partFile(1), partFile(0)) }],
    ["a part was emptied", () => truncateSync(partFile(0))],
    ["a part is there twice", () => cpSync(partFile(0), join(auditSegmentsFolder(data), "000000000001.jsonl"))],
    ["the log was emptied", () => truncateSync(auditLogFile(data))],
    ["the log is taken away", () => rmSync(auditLogFile(data))],
  ]
  it.each(attacks)("are found to be broken where %s, and still are when the host went on", async (_, attack) => {
    await fill(20)
    expect((await verifyChain(data)).ok).toBe(true)
    attack()
    expect((await verifyChain(data)).ok).toBe(false)
    await fill(2, { from: 20 })
    expect((await verifyChain(data)).ok).toBe(false)
  })

  it("are held against a key and a head that were kept elsewhere, from a copy that nobody may write", async () => {
    await fill(20)
    const first = readReceipts(data)[0]?.hash ?? ""
    const copy = `${data}-copy`
    try {
      cpSync(auditFolder(data), join(copy, "audit"), { recursive: true })
      expect(await verifyChain(copy, { head: first })).toMatchObject({ ok: true, entries: 20 })
      const other = { id: "ed25519-x", alg: "Ed25519", publicKey: "A".repeat(43), createdAt: "" } as const
      expect(await verifyChain(copy, { keys: [other] })).toMatchObject({ ok: false, code: "signature.invalid" })
    } finally {
      rmSync(copy, { recursive: true, force: true })
    }
  })
})

describe("parts that are older than the operator keeps", () => {
  it("are removed on record, and the chain verifies without them, with a word about it", async () => {
    await fill(20)
    const [count, before] = [parts().length, calls().length]
    await fill(1, { from: 20, keepMs: 0 })
    expect(parts()).toEqual([])
    expect(calls().length).toBeLessThan(before)
    expect(readReceipts(data).find(({ action }) => action === "audit.pruned")?.metadata?.["segments"]).toHaveLength(
      count,
    )
    const verdict = await verifyChain(data)
    expect(verdict).toMatchObject({ ok: true })
    expect(verdict.ok && verdict.notes).toHaveLength(count)
    using index = openReceiptIndex(data, "shared")
    expect((await index.find({ call: "c0" }, { limit: 10 }))?.entries).toEqual([])
    expect((await index.find({ call: "c20" }, { limit: 10 }))?.entries).toHaveLength(1)
  })
  it("are not what somebody else took away beside them, or said to be removed", async () => {
    await fill(10)
    await fill(1, { from: 10, keepMs: 0 })
    await fill(10, { from: 11 })
    expect(await verifyChain(data)).toMatchObject({ ok: true })
    rmSync(partFile(0))
    expect(await verifyChain(data)).toMatchObject({
      ok: false,
      code: "chain.broken",
      message: expect.stringContaining("none says that they were removed"),
    })
  })
  it("are those alone: what is younger stays", async () => {
    await fill(20)
    const before = parts()
    await fill(1, { from: 20, keepMs: 3_600_000 })
    expect(parts().slice(0, before.length)).toEqual(before)
  })
})
