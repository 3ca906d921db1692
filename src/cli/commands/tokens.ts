/**
 * `caisson tokens create|list|revoke`: who may use the daemon's API.
 *
 * Guarantees: a token goes to stdout, once, when it is made; no list shows one. Also without a daemon.
 */
import type { TokenListing } from "../../host/types.ts"
import { reasons, type ReasonCode } from "../../host/reasons.ts"
import type { CallError } from "../../host/types.ts"
import { exit } from "../exit.ts"
import { withCaisson } from "../reach/with-caisson.ts"
import { table } from "../render/table.ts"
import { resultJson, type Terminal } from "../terminal.ts"
import { says } from "../texts.ts"
import { inline } from "../visible.ts"

export interface TokenFlags {
  readonly user?: string
  readonly tenant?: string
  readonly label?: string
  readonly person?: boolean
  readonly workspace?: readonly string[]
  readonly anyWorkspace?: boolean
  readonly role?: readonly string[]
  readonly days?: string
  readonly json?: boolean
}

const failed = (error: CallError, terminal: Terminal): number => {
  terminal.say(`caisson: ${error.code}: ${inline(error.message)}`)
  terminal.say(`hint: ${inline(error.hint)}`)
  return Object.hasOwn(reasons, error.code) ? reasons[error.code as ReasonCode].exit : exit.usage
}
const asJson = ({ json }: Pick<TokenFlags, "json">, terminal: Terminal): boolean =>
  json === true || !terminal.isInteractive

export const create = (flags: TokenFlags, terminal: Terminal): Promise<number> =>
  withCaisson({}, terminal, async (caisson) => {
    const made = await caisson.tokens.issue({
      ...(flags.user === undefined ? {} : { user: flags.user }),
      ...(flags.tenant === undefined ? {} : { tenant: flags.tenant }),
      ...(flags.label === undefined ? {} : { label: flags.label }),
      ...(flags.anyWorkspace === true ? { workspaces: "any" as const } : { workspaces: flags.workspace ?? [] }),
      ...(flags.role === undefined ? {} : { roles: flags.role }),
      ...(flags.days === undefined ? {} : { days: Number(flags.days) }),
      agent: flags.person !== true,
    })
    if (!made.ok) return failed(made.error, terminal)
    if (asJson(flags, terminal)) resultJson(terminal, made.value)
    else {
      terminal.say(`caisson: ${says.toldOnce}`)
      terminal.result(made.value.token)
    }
    return exit.ok
  })

const rowOf = ({ id, user, label, agent, roles, workspaces, expires, revoked }: TokenListing): string[] => [
  id,
  inline(user),
  agent ? "agent" : "person",
  roles.join(" "),
  inline(workspaces === "any" ? "any" : workspaces.join(" ")),
  revoked === undefined ? (expires ?? "") : "revoked",
  inline(label),
]

export const list = (flags: TokenFlags, terminal: Terminal): Promise<number> =>
  withCaisson({}, terminal, async (caisson) => {
    const known = await caisson.tokens.list(flags.tenant === undefined ? {} : { tenant: flags.tenant })
    if (!known.ok) return failed(known.error, terminal)
    if (asJson(flags, terminal)) resultJson(terminal, known.value)
    else if (known.value.length === 0) terminal.say(says.noTokens)
    else
      terminal.result(
        table(["ID", "USER", "FOR", "ROLES", "WORKSPACES", "UNTIL", "LABEL"], known.value.map(rowOf), terminal.width),
      )
    return exit.ok
  })

export const revoke = (id: string, flags: TokenFlags, terminal: Terminal): Promise<number> =>
  withCaisson({}, terminal, async (caisson) => {
    const gone = await caisson.tokens.revoke(id, flags.tenant === undefined ? {} : { tenant: flags.tenant })
    if (!gone.ok) return failed(gone.error, terminal)
    terminal.say(`${inline(id)} ${says.revoked}`)
    return exit.ok
  })
