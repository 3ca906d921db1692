/** What a receipt says of an access record: programs, paths of the workspace and totals; the whole by its digest. Pure. */
import { digestOf } from "../../manifest/values/digest.ts"
import type { JsonObject } from "../../manifest/types.ts"
import type { AccessedPath, AccessRecord } from "./types.ts"

const NAMED = 40

const ofWorkspace = (rows: readonly AccessedPath[]): readonly string[] =>
  rows
    .filter(({ where, verdict }) => where === "workspace" && verdict === "allowed")
    .slice(0, NAMED)
    .map(({ path, folder }) => (folder === true ? `${path}/**` : path))

export const accessFacts = (access: AccessRecord): JsonObject => {
  const { means, reads, writes, programs, hosts, seen, lost } = access
  const started = programs.filter(({ verdict }) => verdict === "allowed").map(({ name }) => name)
  return {
    means,
    seen,
    lost,
    programs: [...new Set(started)].slice(0, NAMED),
    reads: [...ofWorkspace(reads)],
    writes: [...ofWorkspace(writes)],
    rows: { reads: reads.length, writes: writes.length, programs: programs.length, hosts: hosts.length },
    digest: digestOf(JSON.parse(JSON.stringify(access)) as JsonObject),
  }
}
