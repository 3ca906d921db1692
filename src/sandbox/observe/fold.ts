/**
 * Rows of requests → few enough to be told. Pure.
 *
 * Guarantees: at most `OBSERVE.rows`, what a person should hear of first, and no request is left out: where there are too many
 * rows, those of one folder that were treated alike become a row of that folder, and then of the folder above. What nobody
 * has to hear of gives way first; of the rest, only rows that are many in one folder do.
 */
import { OBSERVE } from "./limits.ts"
import type { ObservedPath } from "./observed.ts"
import { placeOf } from "./places.ts"

export type Row = Omit<ObservedPath, "count"> & {
  count: number
  /** a folder's, for want of room for what a person should hear of one by one */
  readonly crowded?: true
}

/** The folder so many steps above a file; of a folder's own row, itself is the first. */
const above = ({ path, folder }: Row, steps: number): string => {
  let end = path.length
  for (let step = folder === true ? 1 : 0; step < steps && end > 0; step += 1) end = path.lastIndexOf("/", end - 1)
  return end <= 0 ? "/" : path.slice(0, end)
}

/** Rows of one key are one row. */
export const keyOf = ({ path, folder, op, verdict, reason, notable }: Row): string =>
  `${op} ${verdict} ${reason ?? ""} ${notable === true} ${path}${folder === true ? "/" : ""}`

const merged = (group: readonly Row[], path: string, isCrowded: boolean): Row => {
  const [{ op, verdict, reason, notable }] = group as [Row]
  const bytes = group.reduce((sum, row) => sum + (row.bytes ?? 0), 0)
  return {
    path,
    op,
    verdict,
    ...(reason === undefined ? {} : { reason }),
    ...(notable === true ? { notable } : {}),
    folder: true,
    count: group.reduce((sum, row) => sum + row.count, 0),
    ...(bytes === 0 ? {} : { bytes }),
    ...(isCrowded || group.some(({ crowded }) => crowded === true) ? { crowded: true as const } : {}),
  }
}

interface Fold {
  /** a row becomes that of the folder so many steps above it */
  readonly steps: number
  /** so many of one folder stay as they are */
  readonly most: number
  /** whoever they are for */
  readonly isCrowd: boolean
  /** the fullest folders first, until there are as few rows as this */
  readonly enough: number
}

const foldOnce = (rows: readonly Row[], { steps, most, isCrowd, enough }: Fold): readonly Row[] => {
  const groups = new Map<string, Row[]>()
  for (const [at, row] of rows.entries()) {
    const { op, verdict, reason, notable, path } = row
    const isOwn = !isCrowd && (notable === true || op === "start")
    // What lies in another part of the sandbox is of another kind, however many there are of the one.
    const key = isOwn
      ? `one ${at}`
      : `${op} ${verdict} ${reason ?? ""} ${notable === true} ${placeOf(path)} ${above(row, steps)}`
    const group = groups.get(key)
    if (group === undefined) groups.set(key, [row])
    else group.push(row)
  }
  let left = rows.length
  const folded = [...groups.values()]
    .toSorted((one, other) => other.length - one.length)
    .flatMap((group) => {
      const [first] = group
      if (first === undefined || group.length <= most || left <= enough) return group
      left -= group.length - 1
      return [merged(group, above(first, steps), isCrowd)]
    })
  // A folder may have had a row already.
  return [...Map.groupBy(folded, keyOf).values()].map((same) =>
    same.length === 1 ? (same[0] as Row) : merged(same, (same[0] as Row).path, false),
  )
}

const STEPS = [1, 2, 3, 4, 6, 8, 12, 16, 32, 64, Number.POSITIVE_INFINITY]

export const foldedRows = (rows: readonly Row[]): readonly Row[] => {
  const many = { steps: 1, most: OBSERVE.filesOfAFolder, isCrowd: false, enough: 0 }
  let folded = foldOnce(rows, many)
  for (const isCrowd of [false, true])
    for (const steps of STEPS)
      if (folded.length > OBSERVE.rows) folded = foldOnce(folded, { steps, most: 1, isCrowd, enough: OBSERVE.rows })
  return [...folded.filter(({ notable }) => notable === true), ...folded.filter(({ notable }) => notable !== true)]
}
