/**
 * `caisson login|logout DRIVER`, `caisson auth`: the login state machine, for people and for platforms that relay to them.
 *
 * Guarantees: what happens is told on stderr while it does; stdout carries the report, or with `--headless` the steps and
 * then the report, a line of JSON each. Ctrl-C ends a login, and nobody is signed in by it.
 */
import type { LoginProgress } from "../../host/index.ts"
import { processCaller } from "../../host/access/caller.ts"
import type { AuthListing, CallError, LoginReport } from "../../host/types.ts"
import { exit, exitOfError } from "../exit.ts"
import { type HostFlags, withHost } from "../host.ts"
import { onInterrupt } from "../interrupt.ts"
import { personAtTerminal } from "../person/at-terminal.ts"
import { relayedPerson } from "../person/relayed.ts"
import { table } from "../render/table.ts"
import { resultJson, type Terminal } from "../terminal.ts"
import { says } from "../texts.ts"
import { inline } from "../visible.ts"

interface LoginFlags extends HostFlags {
  readonly workspace: string
  readonly user?: string
  readonly headless?: boolean
  readonly wait?: boolean
  readonly json?: boolean
}

const who = ({ user, workspace }: LoginFlags) => ({ caller: processCaller(user), workspace })
const asJson = ({ json }: LoginFlags, terminal: Terminal): boolean => json === true || !terminal.isInteractive

const refused = (error: CallError, flags: LoginFlags, terminal: Terminal): number => {
  if (asJson(flags, terminal)) resultJson(terminal, { ok: false, error })
  terminal.say(`caisson: ${error.code}: ${inline(error.message)}`)
  terminal.say(`hint: ${inline(error.hint)}`)
  return exitOfError(error)
}

const wordsOf = (progress: LoginProgress): string => {
  switch (progress.at) {
    case "waiting":
      return progress.for === "turn" ? "waiting for another login of it to end" : `waiting for the ${progress.for}`
    case "setup":
      return `set-up step ${inline(progress.step)}: ${progress.did === "begin" ? "begun" : progress.did}`
    case "flow":
      return `logging in (${inline(progress.method)})`
    case "callback":
      return progress.way === "open"
        ? `port ${progress.port} of this machine leads back to the program until the login ends`
        : `port ${progress.port} of this machine is taken, so the program's page cannot lead back: free it (\`ss -tlnp\`) and log in again, or use --headless and paste the address`
    case "proof":
      return "proving the login"
  }
}

const showLogin = (report: Extract<LoginReport, { ok: true }>, terminal: Terminal): void => {
  const { driver, account, expires, already } = report
  const whose = account === undefined ? "" : ` as ${inline(account)}`
  const until = expires === undefined ? "" : `, until ${expires}`
  terminal.result(`${inline(driver)} is ${already ? "already " : ""}signed in${whose}${until}`)
}

export const login = async (driver: string, flags: LoginFlags, terminal: Terminal): Promise<number> => {
  using interrupt = onInterrupt(() => terminal.say(`caisson: ${says.cancelling}`))
  using relay = flags.headless === true ? relayedPerson(terminal) : undefined
  return await withHost({ ...flags, warm: true }, terminal, async (host) => {
    const report = await host.login(driver, {
      ...who(flags),
      signal: interrupt.signal,
      person: relay?.person ?? (terminal.canAsk ? personAtTerminal(terminal) : {}),
      waits: flags.wait === true || (flags.headless !== true && terminal.canAsk),
      onProgress: (progress) => terminal.say(wordsOf(progress)),
    })
    if (!report.ok) return refused(report.error, flags, terminal)
    if (flags.headless === true || asJson(flags, terminal)) resultJson(terminal, report)
    else showLogin(report, terminal)
    return exit.ok
  })
}

export const logout = async (driver: string, flags: LoginFlags, terminal: Terminal): Promise<number> => {
  using interrupt = onInterrupt(() => terminal.say(`caisson: ${says.cancelling}`))
  return await withHost(flags, terminal, async (host) => {
    const report = await host.logout(driver, { ...who(flags), signal: interrupt.signal })
    if (!report.ok) return refused(report.error, flags, terminal)
    if (asJson(flags, terminal)) resultJson(terminal, report)
    else terminal.result(`${inline(report.driver)} is signed out`)
    if (report.revoked !== undefined && report.revoked !== "yes")
      terminal.say(`the provider was not told: ${inline(report.revoked)}`)
    return exit.ok
  })
}

const rowOf = ({ driver, state, account, expires, why, next, pending }: AuthListing): readonly string[] => [
  inline(driver),
  state,
  inline(account ?? ""),
  expires ?? "",
  inline([next, pending?.join(", "), why].filter((part) => part !== undefined).join("; ")),
]

export const auth = (flags: LoginFlags, terminal: Terminal): Promise<number> =>
  withHost(flags, terminal, async (host) => {
    const report = await host.auth(who(flags))
    if (!report.ok) return refused(report.error, flags, terminal)
    if (asJson(flags, terminal)) resultJson(terminal, report.logins)
    else if (report.logins.length === 0) terminal.say(says.noLogins)
    else
      terminal.result(
        table(["DRIVER", "STATE", "ACCOUNT", "EXPIRES", "NEXT"], report.logins.map(rowOf), terminal.width),
      )
    return exit.ok
  })
