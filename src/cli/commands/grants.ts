/** `caisson grants create|list|revoke`: a yes beforehand, to so many calls of one tool, until a moment. */
import type { CallError, GrantListing } from "../../host/types.ts"
import { reasons, type ReasonCode } from "../../host/reasons.ts"
import { exit } from "../exit.ts"
import { withCaisson } from "../reach/with-caisson.ts"
import { table } from "../render/table.ts"
import { resultJson, type Terminal } from "../terminal.ts"
import { says } from "../texts.ts"
import { inline } from "../visible.ts"

export interface GrantFlags {
  readonly manifests?: readonly string[]
  readonly tool?: string
  readonly user?: string
  readonly workspace?: string
  readonly anyWorkspace?: boolean
  readonly uses?: string
  readonly until?: string
  readonly days?: string
  readonly reason?: string
  readonly json?: boolean
}

const failed = (error: CallError, terminal: Terminal): number => {
  terminal.say(`caisson: ${error.code}: ${inline(error.message)}`)
  terminal.say(`hint: ${inline(error.hint)}`)
  return Object.hasOwn(reasons, error.code) ? reasons[error.code as ReasonCode].exit : exit.usage
}
const asJson = ({ json }: Pick<GrantFlags, "json">, terminal: Terminal): boolean =>
  json === true || !terminal.isInteractive

export const create = (flags: GrantFlags, terminal: Terminal): Promise<number> =>
  withCaisson(
    { ...(flags.manifests === undefined ? {} : { manifests: flags.manifests }) },
    terminal,
    async ({ grants }) => {
      const made = await grants.create({
        tool: flags.tool ?? "",
        ...(flags.user === undefined ? {} : { user: flags.user }),
        ...(flags.anyWorkspace === true ? { workspace: "any" } : {}),
        ...(flags.workspace === undefined ? {} : { workspace: flags.workspace }),
        ...(flags.uses === undefined ? {} : { uses: Number(flags.uses) }),
        ...(flags.until === undefined ? {} : { until: flags.until }),
        ...(flags.days === undefined ? {} : { days: Number(flags.days) }),
        ...(flags.reason === undefined ? {} : { reason: flags.reason }),
      })
      if (!made.ok) return failed(made.error, terminal)
      if (asJson(flags, terminal)) resultJson(terminal, made.value)
      else terminal.result(made.value.id)
      return exit.ok
    },
  )

const stateOf = ({ revoked, good, expires }: GrantListing): string => {
  if (revoked !== undefined) return "revoked"
  return good ? expires : "over"
}
const rowOf = (grant: GrantListing): string[] => [
  grant.id,
  grant.tool,
  inline(grant.user),
  inline(grant.workspace),
  `${grant.used}/${grant.uses}`,
  stateOf(grant),
  inline(grant.by),
  inline(grant.reason),
]

export const list = (flags: GrantFlags, terminal: Terminal): Promise<number> =>
  withCaisson({}, terminal, async ({ grants }) => {
    const known = await grants.list()
    if (!known.ok) return failed(known.error, terminal)
    if (asJson(flags, terminal)) resultJson(terminal, known.value)
    else if (known.value.length === 0) terminal.say(says.noGrants)
    else
      terminal.result(
        table(
          ["ID", "TOOL", "USER", "WORKSPACE", "USED", "UNTIL", "BY", "REASON"],
          known.value.map(rowOf),
          terminal.width,
        ),
      )
    return exit.ok
  })

export const revoke = (id: string, terminal: Terminal): Promise<number> =>
  withCaisson({}, terminal, async ({ grants }) => {
    const gone = await grants.revoke(id)
    if (!gone.ok) return failed(gone.error, terminal)
    terminal.say(`${inline(id)} ${says.revoked}`)
    return exit.ok
  })
