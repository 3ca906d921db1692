/** `budgets` and `context` of a config file: what calls may cost, and what of their context is the operator's to say. Pure. */
import type { JsonObject } from "../../manifest/types.ts"

export type BudgetSpan = "hour" | "day" | "month"
export type BudgetPart = "user" | "workspace" | "tool"

/** So many calls, or units of cost, in each stretch of time; of every tenant apart. */
export interface Budget {
  /** of whose calls; absent: everybody's */
  readonly user?: string
  /** of which tools: an id, or with `*` for the rest; absent: all */
  readonly tool?: string
  readonly per: BudgetSpan
  /** what has an account of its own; empty: one account for all that it speaks of */
  readonly each: readonly BudgetPart[]
  readonly calls?: number
  /** as drivers declare them: thousandths of a cent */
  readonly units?: number
}
/** For calls that fit all that is named here. */
export interface BoundContext {
  readonly tenant?: string
  readonly user?: string
  /** absolute; calls on it or below */
  readonly workspace?: string
  readonly values: JsonObject
}

/** Who may use tools that say that they work on data of a class. */
export interface DataClass {
  readonly class: string
  /** absent: of any tenant; this host's own is `local` */
  readonly tenants?: readonly string[]
  /** absent: anybody */
  readonly users?: readonly string[]
  /** one of them; absent: with any */
  readonly roles?: readonly string[]
}

export interface CallBudgetSettings {
  readonly user?: string
  readonly tool?: string
  readonly per: BudgetSpan
  readonly each?: readonly BudgetPart[]
  readonly calls?: number
  readonly units?: number
}
export interface BoundContextSettings {
  readonly tenant?: string
  readonly user?: string
  readonly workspace?: string
  readonly values: JsonObject
}

export const callBudgetsOf = (written: readonly CallBudgetSettings[]): readonly Budget[] =>
  Object.freeze(
    written.map(({ each = ["user", "workspace", "tool"], ...rest }) =>
      Object.freeze({ ...rest, each: Object.freeze([...each].toSorted()) }),
    ),
  )

export const boundContextOf = (
  written: readonly BoundContextSettings[],
  path: (text: string) => string,
): readonly BoundContext[] =>
  Object.freeze(
    written.map(({ workspace, ...rest }) =>
      Object.freeze({ ...rest, ...(workspace === undefined ? {} : { workspace: path(workspace) }) }),
    ),
  )
