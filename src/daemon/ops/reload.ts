/**
 * Manifests and config, read again while the daemon runs.
 *
 * Guarantees: taken whole or not at all, the daemon's own settings with the host's; what only a start can take is refused
 * by name; a certificate is read again from the files that were named at the start. The log's file is opened anew either
 * way, so that whoever turns logs over needs no start.
 */
import { isDeepStrictEqual } from "node:util"
import { type Caller, isOperator, processCaller } from "../../host/access/caller.ts"
import type { ServeConfig } from "../../host/config/serve-settings.ts"
import { callErrorOf } from "../../host/failure.ts"
import { HostStartError } from "../../host/start-error.ts"
import type { Host, ReloadReport } from "../../host/types.ts"
import type { DaemonLog } from "./log.ts"
import type { Metrics } from "./metrics.ts"

const FIXED = ["listen", "socket", "tls", "log", "traces"] as const

interface ReloadParts {
  readonly host: Host
  readonly log: DaemonLog
  readonly metrics: Metrics
  readonly settings: () => ServeConfig
  /** as the config has it now */
  readonly written: () => ServeConfig
  readonly take: (settings: ServeConfig) => void
  /** the catalogue is another one by now */
  readonly taken: () => void
  /** The certificate, read again; throws where it cannot be used. Answers how to take it. */
  readonly renew: () => () => void
}

const refused = (code: HostStartError["code"], message: string, hint: string): ReloadReport => ({
  ok: false,
  error: callErrorOf({
    ok: false,
    code,
    message: `nothing was taken: ${message}`,
    hint,
    retryable: false,
    details: {},
  }),
})

/** What the config says now, or why the host's own reading of it is to tell what is wrong with it. */
const settingsNow = (written: () => ServeConfig): ServeConfig | undefined => {
  try {
    return written()
  } catch (error) {
    if (error instanceof HostStartError) return undefined
    throw error
  }
}

const renewed = (renew: ReloadParts["renew"]): (() => void) | ReloadReport => {
  try {
    return renew()
  } catch (error) {
    if (error instanceof HostStartError) return refused(error.code, error.message, error.fix)
    throw error
  }
}

export const createDaemonReload = ({ host, log, metrics, settings, written, take, taken, renew }: ReloadParts) => {
  const reopen = (): void => {
    try {
      log.reopen()
    } catch (error) {
      log.fault(error)
    }
  }
  const read = async (caller: Caller): Promise<ReloadReport> => {
    const next = isOperator(caller) ? settingsNow(written) : undefined
    const other = next && FIXED.find((name) => !isDeepStrictEqual(next[name], settings()[name]))
    if (other !== undefined)
      return refused(
        "input_invalid",
        `\`serve.${other}\` is another one in the config, and is taken only at a start`,
        "end the daemon and start it anew, or take the change back",
      )
    const certificate = isOperator(caller) ? renewed(renew) : () => undefined
    if (typeof certificate !== "function") return certificate
    const report = await host.reload({ caller })
    if (report.ok) certificate()
    if (report.ok && next !== undefined) take(next)
    if (report.ok) taken()
    return report
  }
  return async (caller: Caller = processCaller()): Promise<ReloadReport> => {
    reopen()
    const report = await read(caller)
    metrics.reload(report.ok ? "taken" : "refused")
    log.event(report.ok ? "reloaded" : "not reloaded", {
      actor: caller.actor,
      ...(report.ok ? {} : { cause: report.error.code }),
    })
    return report
  }
}
