/** How far a client can be asked, as it declared itself: with the request in the new era, at its start in the old one. */
import { CLIENT_CAPABILITIES_META_KEY, type Server, type ServerContext } from "@modelcontextprotocol/server"

export const TASKS = "io.modelcontextprotocol/tasks"

interface Declared {
  readonly elicitation?: { readonly form?: unknown; readonly url?: unknown }
  readonly sampling?: unknown
  readonly roots?: unknown
  readonly extensions?: Readonly<Record<string, unknown>>
}
export interface Reach {
  /** 2026-07-28 or later: questions are answers, and the client comes back */
  readonly modern: boolean
  readonly form: boolean
  readonly url: boolean
  readonly sample: boolean
  readonly roots: boolean
  readonly tasks: boolean
}

export const reachOf = (server: Server, { mcpReq }: ServerContext): Reach => {
  const envelope = mcpReq.envelope as Readonly<Record<string, unknown>> | undefined
  const own = envelope?.[CLIENT_CAPABILITIES_META_KEY]
  const modern = own !== undefined
  const { elicitation, sampling, roots, extensions } = (own ?? server.getClientCapabilities() ?? {}) as Declared
  return {
    modern,
    form: elicitation !== undefined && (elicitation.form !== undefined || elicitation.url === undefined),
    url: elicitation?.url !== undefined,
    sample: sampling !== undefined,
    roots: roots !== undefined,
    tasks: modern && extensions?.[TASKS] !== undefined,
  }
}
