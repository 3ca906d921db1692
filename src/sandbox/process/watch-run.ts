/**
 * What ends a run that does not end by itself: its deadline, its CPU time, what it writes, and whoever cancels it.
 *
 * Guarantees: each calls `stop` as soon as it is seen; nothing is called after `end`.
 */
import type { Ending, Job } from "../backend.ts"
import { diskNearlyFull } from "../endings.ts"
import type { OpenLayers } from "../layers/call-layers.ts"
import { RUN } from "./limits.ts"

interface WatchRunOptions {
  readonly limits: Job["limits"]
  /** CPU time of the tree so far; absent where nobody counts it */
  readonly cpuMs?: () => number | undefined
  readonly processes: () => readonly number[]
  readonly layers: Pick<OpenLayers, "watch">
  /** aborted with an `Ending`, or with anything for `cancelled` */
  readonly cancel: AbortSignal
  readonly stop: (ending: Ending) => void
}

const isEnding = (reason: unknown): reason is Ending =>
  typeof reason === "object" && reason !== null && "by" in reason && typeof reason.by === "string"

export const watchRun = ({ limits, cpuMs, processes, layers, cancel, stop }: WatchRunOptions): { end(): void } => {
  const deadline = setTimeout(() => stop({ by: "limit", limit: "wall" }), limits.wallMs)
  const most = limits.cpuMs
  const cpuWatch =
    most === undefined || cpuMs === undefined
      ? undefined
      : setInterval(() => {
          if ((cpuMs() ?? 0) > most) stop({ by: "limit", limit: "cpu" })
        }, RUN.cpuPollMs)
  const meter = layers.watch({
    processes,
    exceeded: (what) => stop(what === "limit" ? { by: "limit", limit: "disk" } : diskNearlyFull),
  })
  const onCancel = (): void => stop(isEnding(cancel.reason) ? cancel.reason : { by: "cancelled" })
  cancel.addEventListener("abort", onCancel, { once: true })
  if (cancel.aborted) onCancel()
  return {
    end() {
      meter.stop()
      clearTimeout(deadline)
      clearInterval(cpuWatch)
      cancel.removeEventListener("abort", onCancel)
    },
  }
}
