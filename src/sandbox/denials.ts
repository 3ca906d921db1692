/** What stopped a call, in the words of `denied`: the same for every backend. Pure. */
import type { Denial, Ending } from "./backend.ts"
import type { AskedFor } from "./endings.ts"

/** Who collects the output tells of its limit. */
type LimitEnding = Exclude<Extract<Ending, { by: "limit" }>["limit"], "output">
const limitTarget = (limit: LimitEnding, limits: AskedFor["limits"]): string => {
  switch (limit) {
    case "wall":
      return `${limits.wallMs} ms`
    case "cpu":
      return `${limits.cpuMs} ms of CPU`
    case "memory":
      return `${limits.memoryBytes} bytes of memory`
    case "pids":
      return `${limits.pids} processes`
    case "disk":
      return `${limits.diskBytes} bytes written`
  }
}

/** Denials that follow from how the call ended and from the counters read at its end. */
export const denialsOf = (ending: Ending, asked: AskedFor, refused: { readonly pids: number }): Denial[] => {
  const denied: Denial[] = []
  const limit = (name: LimitEnding, count: number): void => {
    if (!denied.some((denial) => denial.reason === name))
      denied.push({ layer: "limit", reason: name, target: limitTarget(name, asked.limits), count })
  }
  if (refused.pids > 0) limit("pids", refused.pids)
  if (ending.by === "limit" && ending.limit !== "output") limit(ending.limit, 1)
  if (ending.by === "exec-denied")
    denied.push({ layer: "exec", reason: "children_forbidden", target: asked.executables.program, count: 1 })
  return denied
}
