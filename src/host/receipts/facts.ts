/**
 * What is asked of entries, read out of one: how it ended, where it wrote, which hosts it reached, what it was denied.
 *
 * Guarantees: pure. A list that did not fit into its receipt is told as one that may hold anything, so that no question
 * passes over a call for what was cut off.
 */
import type { JsonObject, JsonValue } from "../../manifest/types.ts"
import type { AuditEvent } from "./event.ts"

interface EntryFacts {
  readonly call?: string
  /** `id@major` of a call; else what the entry is about */
  readonly tool: string
  readonly verdict: string
  /** `id@version` */
  readonly driver?: string
  readonly denied: boolean
  /** absolute paths that it changed, or would have; those that are in the workspace now are `committed` */
  readonly paths: readonly { readonly path: string; readonly committed: boolean }[]
  /** the folder of which it may have changed anything else: the list was cut */
  readonly within?: string
  /** something of it is in the workspace; of a decision: of its call */
  readonly committed: boolean
  /** `host:port` */
  readonly hosts: readonly string[]
  /** the list of hosts was cut */
  readonly anyHost: boolean
}

const REFUSING = ["denied", "violation"]

const rowsOf = (value: JsonValue | undefined): readonly JsonObject[] =>
  Array.isArray(value)
    ? value.filter((row): row is JsonObject => typeof row === "object" && row !== null && !Array.isArray(row))
    : []
const textOf = (value: JsonValue | undefined): string | undefined => (typeof value === "string" ? value : undefined)
const below = (folder: string, path: string): string => `${folder === "/" ? "" : folder}/${path}`

export const factsOfEntry = ({ action, subject, metadata = {} }: AuditEvent): EntryFacts => {
  const call = textOf(metadata["call"])
  const named = textOf(metadata["workspace_id"]) ?? subject.path
  const folder = named?.startsWith("/") === true ? named : undefined
  const driver = metadata["driver"] as JsonObject | undefined
  const [id, version] = [textOf(driver?.["id"]), textOf(driver?.["version"])]
  const isMinimal = metadata["minimal"] === true
  const wasCut = isMinimal || metadata["effects_digest"] !== undefined
  const paths =
    folder === undefined
      ? []
      : rowsOf(metadata["effects"]).flatMap((row) =>
          [row["path"], row["from"]].flatMap((path) =>
            typeof path === "string" ? [{ path: below(folder, path), committed: row["committed"] === true }] : [],
          ),
        )
  return {
    ...(call === undefined ? {} : { call }),
    tool: subject.ref ?? subject.kind,
    verdict: textOf(metadata["verdict"]) ?? textOf(metadata["code"]) ?? "ok",
    ...(id === undefined ? {} : { driver: version === undefined ? id : `${id}@${version}` }),
    denied:
      action.endsWith(".denied") ||
      rowsOf(metadata["denied"]).length > 0 ||
      REFUSING.includes(textOf(metadata["class"]) ?? ""),
    paths,
    ...(wasCut && folder !== undefined ? { within: folder } : {}),
    committed: metadata["effects_committed"] === true,
    hosts: rowsOf(metadata["reached"]).flatMap((row) => textOf(row["target"]) ?? []),
    anyHost: isMinimal || metadata["reached_digest"] !== undefined,
  }
}
