/**
 * What a driver's page is made of: its manifests, its receipts, and what was accepted of it.
 *
 * Guarantees: reads only. What it did is what receipts of this data folder say, the latest of them.
 */
import { asksOf, changesBetween } from "../../../authoring/review/asks.ts"
import { countedRows, type PageRow, type ReviewPage } from "../../../authoring/review/page.ts"
import type { AuditEvent } from "../../../host/receipts/event.ts"
import type { Host, ReviewReport } from "../../../host/types.ts"
import type { JsonObject, JsonValue } from "../../../manifest/types.ts"
import { SensitivePaths } from "../../../sandbox/effects/judging/sensitive-paths.ts"
import { ownFiles } from "./own-files.ts"

/** So many of the latest entries are looked at. */
const RECEIPTS = 500
const ROWS = 100

const rowsOf = (value: JsonValue | undefined): readonly JsonObject[] =>
  Array.isArray(value) ? (value as readonly JsonObject[]) : []

const sensitive = new SensitivePaths([])
const isTrusted = (glob: string): boolean =>
  sensitive.literalSegments(glob.split("/"), { folder: false, symlink: false }).includes(true)

/** Undefined: there is no such driver. */
export const asksFor = async (host: Host, ref: string): Promise<readonly PageRow[] | undefined> => {
  const found = (await host.drivers()).find(
    ({ contract }) => contract.id === ref || `${contract.id}@${contract.major}` === ref,
  )?.contract
  if (found === undefined) return undefined
  const ids = new Set(found.implements.map(({ tool }) => tool))
  const tools = (await host.tools()).map(({ contract }) => contract).filter(({ id }) => ids.has(id))
  return asksOf(found, tools, isTrusted, ownFiles(found))
}

const counted = (texts: readonly string[]): readonly PageRow[] => countedRows(texts, ROWS)

const driverKey = ({ metadata = {} }: AuditEvent): string => {
  const { id, version } = (metadata["driver"] ?? {}) as { readonly id?: unknown; readonly version?: unknown }
  return typeof id === "string" ? `${id}@${typeof version === "string" ? (version.split(".")[0] ?? "") : ""}` : ""
}

const text = (value: JsonValue | undefined): string => (typeof value === "string" ? value : "")

export const pageOf = async (host: Host, report: ReviewReport & { readonly ok: true }): Promise<ReviewPage> => {
  const asks = (await asksFor(host, report.driver)) ?? []
  const log = await host.receipts({ limit: RECEIPTS })
  const own = (log.ok ? log.receipts : []).filter((event) => driverKey(event) === report.driver)
  const facts = own.map(({ metadata }) => metadata ?? {})
  const did = (key: string, of: (row: JsonObject) => string): readonly string[] =>
    facts.flatMap((each) => rowsOf(each[key]).map(of))
  const risky = asks.filter(({ risk }) => risk !== undefined)
  const accepted = report.asks?.accepted
  const kept = accepted?.offer?.["rows"]
  const before = Array.isArray(kept) ? kept.filter((row) => typeof row === "string") : undefined
  const now = asks.map((row) => row.text)
  return {
    title: `Driver ${report.driver}`,
    about: `${own.length} calls among the latest ${RECEIPTS} receipts of this data folder; accepted ${accepted?.at ?? "never"}.`,
    sections: [
      {
        title: "What changed since it was accepted",
        // What is there now, whatever waits: that may be of another day, or longer than is kept.
        rows:
          before === undefined
            ? [{ text: "what was accepted is longer than is kept", risk: "look at all that it asks for" }]
            : changesBetween(before, now),
        none: "nothing of what it asks for",
      },
      { title: "What is risky", rows: risky, none: "nothing that stands out" },
      { title: "What it asks for", rows: asks.map((row) => ({ text: row.text })), none: "nothing" },
      {
        title: "What it did",
        rows: counted([
          ...facts.map((each) => `ended as ${text(each["verdict"]) || "ok"}`),
          ...did("effects", (row) => `${text(row["kind"])} ${text(row["path"])}`),
          ...did("reached", (row) => `reached ${text(row["target"])}`),
        ]),
        none: "no call of it is in the latest receipts",
      },
      {
        title: "What it was denied",
        rows: counted(did("denied", (row) => `${text(row["layer"])} ${text(row["target"])}`)).map((row) => ({
          risk: "it tried",
          ...row,
        })),
        none: "nothing",
      },
    ],
  }
}
