/**
 * The functions that a driver brings in a module of its own, by name.
 *
 * Guarantees: no function is ever carried along, only where it is imported from: a module and an export, inside a
 * sandbox. Does not: load anything.
 */

/** The functions that a driver may bring beside `execute` and `transforms`. */
export const ADAPTERS = ["login", "refresh", "parseOutput", "detectExpiry"] as const
export type Adapter = (typeof ADAPTERS)[number]

export interface DriverCode {
  /** absolute path; absent: the functions are nowhere that a sandbox could import them from */
  readonly module?: string
  readonly export: string
  /** of the module and the files that it names, as they were when it was registered */
  readonly digest?: string
  /** the keys of `execute`; absent: the kind's own dispatch */
  readonly execute?: readonly string[]
  readonly adapters: readonly Adapter[]
  /** names that `mapping` may use */
  readonly transforms: readonly string[]
}
