/**
 * What one sealed run was seen to do, as plain data, whoever watched.
 *
 * Assumes: paths are as effects report them (relative to the workspace, bytes that are not UTF-8 escaped); every text in it
 * was chosen by the program and is nobody's word.
 */
export interface SeenWrite {
  readonly path: string
  /** of a rename, the path before */
  readonly from?: string
  /** a folder that the run made */
  readonly made: boolean
  /** other programs run or trust what stands there, so that no wildcard covers it */
  readonly guarded?: boolean
}

export interface Observation {
  /** the evidence: `sha256:…` of the run's receipt */
  readonly receipt: string
  readonly ok: boolean
  /** the value that the run answered, where it did */
  readonly value?: unknown
  readonly writes: readonly SeenWrite[]
  /** of the workspace; absent: nobody watched what it read */
  readonly reads?: readonly string[]
  /** folders of the workspace (`.` is all of it) whose files were read and not told apart */
  readonly readBelow?: readonly string[]
  /** programs that it started, by name; and those that it was kept from */
  readonly started: readonly string[]
  readonly kept: readonly string[]
  /** what lay outside of what it is shown and it asked for: files of this machine, of a home */
  readonly barred: readonly string[]
  /** `host:port` that it reached, and that it was kept from */
  readonly reached: readonly string[]
  readonly unreached: readonly string[]
  readonly wallMs: number
  /** what it printed, and what it sent and got over the network, in bytes; absent: nobody counted */
  readonly printed?: number
  readonly sent?: number
  readonly got?: number
}

/** A value and the receipts that showed it. */
export interface Seen<T> {
  readonly value: T
  readonly receipts: readonly string[]
}

/** The union of several, each value once, in the order of its text. */
export const union = <T>(
  runs: readonly Observation[],
  of: (run: Observation) => readonly T[],
  keyOf: (value: T) => string,
): readonly Seen<T>[] => {
  const all = new Map<string, { readonly value: T; readonly receipts: Set<string> }>()
  for (const run of runs)
    for (const value of of(run)) {
      const known = all.get(keyOf(value)) ?? { value, receipts: new Set<string>() }
      known.receipts.add(run.receipt)
      all.set(keyOf(value), known)
    }
  return [...all]
    .toSorted(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0))
    .map(([, { value, receipts }]) => ({ value, receipts: [...receipts] }))
}
