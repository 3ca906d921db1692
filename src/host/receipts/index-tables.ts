/**
 * Where in the log what lies, as tables: one row an entry, and beside it the paths and hosts that it names.
 *
 * Guarantees: an entry is put in with all that is asked of it, in the transaction that its caller has; putting it in again
 * changes nothing. A decision that committed what a call was held for has the paths of that call.
 */
import type { DatabaseSync } from "node:sqlite"
import type { Schema } from "../store/sqlite/schema.ts"
import type { AuditEvent } from "./event.ts"
import { factsOfEntry } from "./facts.ts"
import { whoseEntry } from "./whose.ts"

export const indexSchema: Schema = {
  applicationId: 0x43616978,
  steps: [
    `CREATE TABLE entries (
       seq INTEGER PRIMARY KEY,
       start INTEGER NOT NULL,
       bytes INTEGER NOT NULL,
       hash TEXT NOT NULL,
       ms INTEGER NOT NULL,
       tenant TEXT NOT NULL,
       user TEXT NOT NULL,
       call TEXT,
       tool TEXT NOT NULL,
       verdict TEXT NOT NULL,
       driver TEXT,
       denied INTEGER NOT NULL
     ) STRICT;
     CREATE INDEX entries_by_user ON entries (tenant, user, seq);
     CREATE INDEX entries_by_tool ON entries (tenant, tool, seq);
     CREATE INDEX entries_by_verdict ON entries (tenant, verdict, seq);
     CREATE INDEX entries_denied ON entries (tenant, user, seq) WHERE denied = 1;
     CREATE INDEX entries_by_time ON entries (ms, seq);
     CREATE INDEX entries_by_call ON entries (call, seq);
     CREATE TABLE paths (
       path TEXT NOT NULL,
       seq INTEGER NOT NULL,
       below INTEGER NOT NULL,
       committed INTEGER NOT NULL,
       PRIMARY KEY (path, seq, below, committed)
     ) STRICT, WITHOUT ROWID;
     CREATE INDEX paths_by_entry ON paths (seq);
     CREATE TABLE hosts (
       host TEXT NOT NULL,
       port TEXT NOT NULL,
       seq INTEGER NOT NULL,
       PRIMARY KEY (host, port, seq)
     ) STRICT, WITHOUT ROWID;`,
  ],
}

/** Stands for any host, where a receipt's list was cut. */
export const ANY_HOST = "*"

/** `host:port`, or a host alone. */
export const hostAndPort = (target: string): { readonly host: string; readonly port: string } => {
  const at = target.lastIndexOf(":")
  const isPort =
    at > 0 && /^[0-9]{1,5}$/.test(target.slice(at + 1)) && (target.indexOf(":") === at || target[at - 1] === "]")
  return isPort
    ? { host: target.slice(0, at).toLowerCase(), port: target.slice(at + 1) }
    : { host: target.toLowerCase(), port: "" }
}

const tenantOfCall = (db: DatabaseSync, call: string): string | undefined => {
  const found = db.prepare("SELECT tenant FROM entries WHERE call = ? ORDER BY seq LIMIT 1").get(call)?.["tenant"]
  return typeof found === "string" ? found : undefined
}

export const putEntry = (db: DatabaseSync, event: AuditEvent, start: number, bytes: number): void => {
  const facts = factsOfEntry(event)
  const whose = whoseEntry(event)
  const { user } = whose
  // What was decided about another tenant's call is not this one's, also where it does not say so.
  const tenant =
    event.action === "tool.invoked" || facts.call === undefined
      ? whose.tenant
      : (tenantOfCall(db, facts.call) ?? whose.tenant)
  db.prepare(
    `INSERT OR REPLACE INTO entries (seq, start, bytes, hash, ms, tenant, user, call, tool, verdict, driver, denied)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
  ).run(
    event.seq,
    start,
    bytes,
    event.hash,
    Date.parse(event.ts),
    tenant,
    user,
    facts.call ?? null,
    facts.tool,
    facts.verdict,
    facts.driver ?? null,
    facts.denied ? 1 : 0,
  )
  const path = db.prepare("INSERT OR IGNORE INTO paths (path, seq, below, committed) VALUES (?, ?, ?, ?)")
  for (const row of facts.paths) path.run(row.path, event.seq, 0, row.committed ? 1 : 0)
  if (facts.within !== undefined) path.run(facts.within, event.seq, 1, facts.committed ? 1 : 0)
  // A decision does not list what it committed: its call's own receipt does.
  if (event.action !== "tool.invoked" && facts.committed && facts.call !== undefined && facts.paths.length === 0)
    db.prepare(
      `INSERT OR IGNORE INTO paths (path, seq, below, committed)
       SELECT path, ?, below, 1 FROM paths JOIN entries USING (seq) WHERE entries.call = ? AND entries.tenant = ?`,
    ).run(event.seq, facts.call, tenant)
  const host = db.prepare("INSERT OR IGNORE INTO hosts (host, port, seq) VALUES (?, ?, ?)")
  for (const target of facts.hosts) {
    const { host: name, port } = hostAndPort(target)
    host.run(name, port, event.seq)
  }
  if (facts.anyHost) host.run(ANY_HOST, "", event.seq)
}

export const emptyIndex = (db: DatabaseSync): void =>
  db.exec("DELETE FROM entries; DELETE FROM paths; DELETE FROM hosts")
