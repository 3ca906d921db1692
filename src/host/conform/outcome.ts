/** Whether a code says that a call could not be tried, rather than what came of it. Pure. */
import { type ErrorClass, type ReasonCode, reasons } from "../reasons.ts"

const blocking: ReadonlySet<ErrorClass> = new Set<ErrorClass>(["routing", "needs-action", "denied", "infrastructure"])

export const isBlocking = (code: string): boolean =>
  Object.hasOwn(reasons, code) && blocking.has(reasons[code as ReasonCode].class)
