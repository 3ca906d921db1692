/** All that a call changed as one digest: equal for equal changes, whatever the clock and the call's id were. Pure. */
import { digestOf, type Digest } from "../../manifest/values/digest.ts"
import type { JsonValue } from "../../manifest/types.ts"
import type { ReportedEffect } from "../types.ts"

const factsOf = ({ kind, path, after, mode, from, target, directory }: ReportedEffect): JsonValue => ({
  kind,
  path,
  ...(after === undefined ? {} : { after }),
  ...(mode?.after === undefined ? {} : { mode: mode.after }),
  ...(from === undefined ? {} : { from }),
  ...(target === undefined ? {} : { target }),
  ...(directory === undefined ? {} : { directory }),
})

const order = (a: ReportedEffect, b: ReportedEffect): number =>
  a.path < b.path ? -1 : a.path > b.path ? 1 : a.kind < b.kind ? -1 : a.kind > b.kind ? 1 : 0

export const writeSetDigest = (effects: readonly ReportedEffect[]): Digest =>
  digestOf([...effects].sort(order).map(factsOf))
