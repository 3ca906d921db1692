import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, truncateSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterEach, beforeEach, describe, expect, it } from "vitest"
import { auditHeadFile, auditLogFile, receiptIndexFile } from "../../../src/data-folder/paths.ts"
import type { Caller } from "../../../src/host/access/caller.ts"
import type { EventDraft } from "../../../src/host/receipts/event.ts"
import { openReceiptIndex, type ReceiptIndex } from "../../../src/host/receipts/index-file.ts"
import { openAuditLog } from "../../../src/host/receipts/log.ts"
import type { ReceiptQuery } from "../../../src/host/receipts/query.ts"

let data: string
beforeEach(() => {
  data = mkdtempSync(join(tmpdir(), "caisson-index-"))
})
afterEach(() => rmSync(data, { recursive: true, force: true }))

const fill = async (...drafts: readonly Partial<EventDraft>[]): Promise<void> => {
  await using log = openAuditLog(data)
  for (const draft of drafts)
    await log.append({
      actor: { id: "alice" },
      action: "tool.invoked",
      subject: { kind: "tool", ref: "t@1" },
      ...draft,
    })
}
const callsOf = (...ids: readonly string[]): readonly Partial<EventDraft>[] =>
  ids.map((call) => ({ metadata: { call, user_id: "alice" } }))
const found = async (index: ReceiptIndex, query: ReceiptQuery = {}, caller?: Caller): Promise<readonly unknown[]> =>
  (await index.find(query, { limit: 100 }, caller))?.entries.map(({ metadata }) => metadata?.["call"]) ?? [
    "not indexed",
  ]

describe("the index of the log", () => {
  it("has what was appended since, by whatever process, and keeps what it has", async () => {
    await fill(...callsOf("a", "b"))
    {
      using index = openReceiptIndex(data, "shared")
      expect(await found(index)).toEqual(["b", "a"])
      await fill(...callsOf("c"))
      expect(await found(index)).toEqual(["c", "b", "a"])
    }
    expect(statSync(receiptIndexFile(data)).mode & 0o777).toBe(0o600)
    using again = openReceiptIndex(data, "shared")
    expect(await found(again, { call: "b" })).toEqual(["b"])
  })

  it("is made anew for a log that was cut, begun anew, or changed at its end", async () => {
    await fill(...callsOf("a", "b", "c"))
    using index = openReceiptIndex(data, "shared")
    expect(await found(index)).toEqual(["c", "b", "a"])
    const log = auditLogFile(data)
    const whole = readFileSync(log, "utf8")
    truncateSync(log, whole.split("\n")[0]?.length ?? 0)
    expect(await found(index)).toEqual([])
    writeFileSync(log, whole)
    expect(await found(index)).toEqual(["c", "b", "a"])
    rmSync(join(data, "audit"), { recursive: true })
    rmSync(join(data, "keys"), { recursive: true })
    await fill(...callsOf("x", "y", "z", "w"))
    expect(await found(index)).toEqual(["w", "z", "y", "x"])
  })

  it("tells an entry as it lies in the log, and leaves out what lies there no more", async () => {
    await fill(...callsOf("a", "b", "c"))
    using index = openReceiptIndex(data, "shared")
    expect(await found(index)).toHaveLength(3)
    const log = auditLogFile(data)
    writeFileSync(
      log,
      readFileSync(log, "utf8")
        .replace('"call":"b"', '"call":"B"')
        .replace(/"hash":"./, '"hash":"Z'),
    )
    expect(await found(index)).not.toContain("a")
  })

  it("serves without its file where that is damaged, a stranger's, or cannot be made", async () => {
    await fill(...callsOf("a"))
    writeFileSync(receiptIndexFile(data), "no database".repeat(1000))
    {
      using index = openReceiptIndex(data, "shared")
      expect(await found(index)).toEqual(["a"])
    }
    expect(readdirSync(data)).toContain("receipts-index.db")
    rmSync(receiptIndexFile(data))
    writeFileSync(join(data, "target"), "kept")
    const { symlinkSync } = await import("node:fs")
    symlinkSync(join(data, "target"), receiptIndexFile(data))
    using index = openReceiptIndex(data, "shared")
    expect(await found(index)).toEqual(["a"])
    expect(readFileSync(join(data, "target"), "utf8")).toBe("kept")
  })

  it("makes nothing on disk for one who only reads", async () => {
    await fill(...callsOf("a"))
    const before = readdirSync(data, { recursive: true }).sort()
    using index = openReceiptIndex(data, "own")
    expect(await found(index)).toEqual(["a"])
    expect(readdirSync(data, { recursive: true }).sort()).toEqual(before)
    expect(readdirSync(data)).not.toContain("receipts-index.db")
    expect(readFileSync(auditHeadFile(data), "utf8")).toContain("complete")
  })

  it("finds a path at the workspace's own bounds, and passes over no call whose list was cut", async () => {
    const wrote = (call: string, path: string, more = {}): Partial<EventDraft> => ({
      subject: { kind: "tool", ref: "t@1", path: "/srv/work" },
      metadata: {
        call,
        user_id: "alice",
        workspace_id: "/srv/work",
        effects: [{ kind: "create", path, committed: true }],
        effects_committed: true,
        ...more,
      },
    })
    await fill(
      wrote("in", "a/b"),
      wrote("like", "a/b%"),
      wrote("next", "a0"),
      wrote("before", "a.txt"),
      wrote("undone", "a/c", {
        effects: [{ kind: "create", path: "a/c", committed: false }],
        effects_committed: false,
      }),
      wrote("cut", "z", { effects_digest: "sha256:0", effects_total: 90_000 }),
      {
        ...wrote("renamed", "q"),
        metadata: { ...wrote("renamed", "q").metadata, effects: [{ path: "q", from: "a/r", committed: true }] },
      },
    )
    using index = openReceiptIndex(data, "own")
    expect(await found(index, { wrote: "/srv/work/a" })).toEqual(["renamed", "cut", "like", "in"])
    expect(await found(index, { wrote: "/srv/work/a/b" })).toEqual(["cut", "in"])
    expect(await found(index, { wrote: "/srv" })).toHaveLength(6)
    expect(await found(index, { wrote: "/" })).toHaveLength(6)
    expect(await found(index, { wrote: "/srv/wor" })).toEqual([])
    expect(await found(index, { wrote: "/srv/work%" })).toEqual([])
  })

  it("finds a host by name and by port, of either spelling, and a call whose list of hosts was cut", async () => {
    const reached = (call: string, ...targets: readonly string[]): Partial<EventDraft> => ({
      metadata: { call, user_id: "alice", reached: targets.map((target) => ({ target, count: 1 })) },
    })
    await fill(reached("one", "api.test:443"), reached("six", "[::1]:80"), {
      metadata: { call: "cut", user_id: "alice", reached: [], reached_digest: "sha256:0" },
    })
    using index = openReceiptIndex(data, "own")
    expect(await found(index, { host: "API.test" })).toEqual(["cut", "one"])
    expect(await found(index, { host: "api.test:80" })).toEqual(["cut"])
    expect(await found(index, { host: "[::1]:80" })).toEqual(["cut", "six"])
    expect(await found(index, { host: "pi.test" })).toEqual(["cut"])
  })

  it("tells nobody of the host's own entries but its operators, and of a call nobody but its user", async () => {
    await fill(
      {
        actor: { id: "alice", role: "operator" },
        action: "token.issued",
        subject: { kind: "token", ref: "x" },
        metadata: {},
      },
      ...callsOf("hers"),
      { metadata: { call: "theirs", user_id: "alice", tenant: "other" } },
      { action: "approval.decided", metadata: { call: "theirs", user_id: "alice" } },
      { actor: { id: "alice" }, metadata: { call: "early", caller: { how: "token", for: "bob" } } },
    )
    using index = openReceiptIndex(data, "own")
    const who = (user: string, more: Partial<Caller> = {}): Caller => ({
      user,
      actor: user,
      how: "token",
      workspaces: "any",
      roles: ["caller"],
      mayApprove: false,
      ...more,
    })
    expect(await found(index, {}, who("alice"))).toEqual(["hers"])
    expect(await found(index, {}, who("bob"))).toEqual(["early"])
    expect(await found(index, {}, who("alice", { tenant: "other" }))).toEqual(["theirs"])
    expect(await found(index, {}, who("alice", { actor: "carl" }))).toEqual([])
    expect(await found(index, {}, who(""))).toEqual([])
    expect(await found(index, {}, who("olga", { roles: ["operator"] }))).toEqual(["early", "hers", undefined])
  })
})
