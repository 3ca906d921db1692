/** Interleaved measurements on a noisy machine: medians and ratios, never absolutes to quote. */
import { appendFileSync } from "node:fs"

export interface Subject {
  readonly name: string
  readonly run: () => Promise<void>
}
export interface Measured {
  readonly name: string
  readonly median: number
  readonly p90: number
}
const quantile = (sorted: readonly number[], q: number): number =>
  sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * q))] ?? Number.NaN

/** Run every subject in turn, `rounds` times, with a short rest so that one's clean-up is not another's cost. */
export const interleave = async (subjects: readonly Subject[], rounds: number, restMs = 25): Promise<Measured[]> => {
  const times = new Map(subjects.map(({ name }) => [name, [] as number[]]))
  for (const { run } of subjects) await run()
  for (let round = 0; round < rounds; round += 1) {
    for (const { name, run } of subjects) {
      const start = performance.now()
      await run()
      times.get(name)?.push(performance.now() - start)
      await new Promise((resolve) => setTimeout(resolve, restMs))
    }
  }
  return [...times].map(([name, values]) => {
    const sorted = values.toSorted((a, b) => a - b)
    return { name, median: quantile(sorted, 0.5), p90: quantile(sorted, 0.9) }
  })
}
export const printTable = (title: string, rows: readonly Measured[], base: string): void => {
  const reference = rows.find(({ name }) => name === base)?.median ?? Number.NaN
  console.log(`\n${title} (median ms · p90 · ratio to ${base})`)
  for (const { name, median, p90 } of rows)
    console.log(
      `  ${name.padEnd(44)} ${median.toFixed(2).padStart(9)} ${p90.toFixed(2).padStart(9)} ${(median / reference).toFixed(2).padStart(7)}`,
    )
}
/** Of one run of `npm run bench`: a row of the table that it prints at its end. */
export interface BarRow {
  readonly what: string
  readonly ratio: number
  readonly bar: number
  readonly atLeast: boolean
}
/** `atLeast`: more is better. Whoever runs several measurements says in its environment where rows are gathered. */
export const bar = (what: string, ratio: number, limit: number, { atLeast = false } = {}): void => {
  const met = atLeast ? ratio >= limit : ratio <= limit
  console.log(`  ${met ? "met " : "MISSED"} ${what}: ${ratio.toFixed(2)} (bar ${atLeast ? "at least " : ""}${limit})`)
  row(what, ratio, limit, { atLeast })
}
/** For the table alone, of what a measurement told in its own words. */
export const row = (what: string, ratio: number, limit: number, { atLeast = false } = {}): void => {
  const told: BarRow = { what, ratio, bar: limit, atLeast }
  const rows = process.env["CAISSON_BENCH_ROWS"]
  if (rows !== undefined) appendFileSync(rows, `${JSON.stringify(told)}\n`)
}
export const ratioOf = (rows: readonly Measured[], name: string, base: string): number =>
  (rows.find((row) => row.name === name)?.median ?? Number.NaN) /
  (rows.find((row) => row.name === base)?.median ?? Number.NaN)

/** So many a second with `clients` at it at once. */
export const perSecond = async (clients: number, times: number, run: () => Promise<void>): Promise<number> => {
  let left = times
  const began = performance.now()
  const client = async (): Promise<void> => {
    while (left > 0) {
      left -= 1
      await run()
    }
  }
  await Promise.all(Array.from({ length: clients }, client))
  return (times / (performance.now() - began)) * 1000
}
export const median = (values: readonly number[]): number =>
  quantile(
    values.toSorted((a, b) => a - b),
    0.5,
  )
