/**
 * Ids of other formats → ids of AIP-14.
 *
 * Guarantees: ASCII alone, so that no two ids look alike and differ; `_` becomes `-`, and what then is no id is refused
 * with what to write. Two ids of a folder that become one are two claims of it, and neither is registered.
 */
import type { Report } from "../values/diagnostics.ts"
import { shown } from "../values/diagnostics.ts"

const AIP_ID = /^[a-z0-9][a-z0-9.-]*[a-z0-9]$/
/** A driver's id is at most 80 characters, `-driver` included. */
const MOST = 72

export const aipId = (written: string, path: string, report: Report): string | undefined => {
  const id = written.replaceAll("_", "-")
  if (id.length <= MOST && AIP_ID.test(id)) return id
  report.error(
    "format-id",
    path,
    `\`${shown(written)}\` cannot become an id here: ${id.length > MOST ? `it is longer than ${MOST} characters` : "ids are lower case ASCII letters and digits, with `.`, `-` and `_` inside"}`,
    "give it an id such as `ticket_create`",
  )
  return undefined
}
