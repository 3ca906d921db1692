/**
 * The daemon that holds the data folder, as commands ask it: over its Unix socket, as the OS user.
 *
 * Guarantees: the answers are those that a host in this process gives. What the daemon refuses is told as that host would tell
 * it; where no answer came, `Unreachable` is thrown, but for calls and decisions, which say what can have been done.
 */
import { existsSync } from "node:fs"
import { resolve } from "node:path"
import { type AskOptions, type Client, createClient, ProblemError, Unreachable } from "../../client/index.ts"
import { daemonSocket } from "../../data-folder/paths.ts"
import type { Caller } from "../../host/access/caller.ts"
import type { ToldDriver, ToldTool, ToldWhy } from "../../host/questions/told.ts"
import { callErrorOf } from "../../host/failure.ts"
import type {
  CallError,
  GrantListing,
  HeldApproval,
  HeldApprovalDetail,
  IssuedToken,
  SecretListing,
  SecretOptions,
  TokenListing,
} from "../../host/types.ts"
import type { Caisson, Catalogue } from "./caisson.ts"
import { callThrough, decided, wireRequest } from "./daemon-call.ts"
import { errorOfProblem } from "./refusals.ts"

/** It has so long to say that it is there. */
const FIRST_SIGN_MS = 10_000

/**
 * The daemon of a data folder, if there is one. Somebody listens on its socket, or nobody does: the lock is not tried, because that
 * would refuse a daemon that starts just then. One that listens and says nothing is no reason to go round it: `Unreachable`.
 */
export const findDaemon = async (data: string): Promise<Client | undefined> => {
  const socket = daemonSocket(data)
  if (!existsSync(socket)) return undefined
  const client = createClient({ socket })
  try {
    await client.ask("health", {}, { signal: AbortSignal.timeout(FIRST_SIGN_MS) })
    return client
  } catch (error) {
    if (error instanceof ProblemError) return client
    if (error instanceof Unreachable && error.why === "absent") return undefined
    if (error instanceof Unreachable) throw error
    throw new Unreachable("silent", "the daemon does not answer")
  }
}

const whoIs = (caller: Caller | undefined): Pick<AskOptions, "user"> =>
  caller === undefined || caller.user === caller.actor ? {} : { user: caller.user }

type CreateToken = Parameters<Client["tokens"]["create"]>[0]
type Told<T> = { readonly ok: true; readonly value: T } | { readonly ok: false; readonly error: CallError }
const told = async <T>(answer: Promise<unknown>): Promise<Told<T>> => {
  try {
    return { ok: true, value: (await answer) as T }
  } catch (error) {
    if (error instanceof ProblemError) return { ok: false, error: errorOfProblem(error) }
    throw error
  }
}

const unnamed = callErrorOf({
  ok: false,
  code: "input_invalid",
  message: "a grant needs the folder that its calls are on",
  hint: "name one: --workspace DIR, or --any-workspace",
  details: { field: "workspace" },
})
/** Relative folders are this process's. */
const placeOf = ({ caller: _self, workspace, ...rest }: SecretOptions) => ({
  ...rest,
  ...(workspace === undefined ? {} : { workspace: resolve(workspace) }),
})

// What the API answers has the host's own types: it is made of them, and its document is held to them by tests.
const listing = <T>(listed: unknown, { unloaded, diagnostics }: object & Record<"unloaded" | "diagnostics", unknown>) =>
  ({ listed, unloaded, diagnostics }) as Catalogue<T>

export const ofDaemon = (client: Client): Caisson => ({
  call: (request, options) => callThrough(client, request, options, whoIs(options.caller)),
  why: async (request, { caller, signal }) => {
    const asked = { ...whoIs(caller), ...(signal === undefined ? {} : { signal }) }
    return (await client.why(wireRequest(request), asked)) as unknown as ToldWhy
  },
  tools: async () => {
    const { tools, ...rest } = await client.tools.list()
    return listing<ToldTool>(tools, rest)
  },
  drivers: async () => {
    const { drivers, ...rest } = await client.drivers.list()
    return listing<ToldDriver>(drivers, rest)
  },
  approvals: async () => (await client.approvals.list()) as unknown as readonly HeldApproval[],
  approval: async (id) => {
    const found = await told<HeldApprovalDetail>(client.approvals.get(id))
    if (found.ok) return found.value
    if (found.error.code === "not_found") return undefined
    throw Object.assign(new Error(found.error.message), { fix: found.error.hint })
  },
  decide: (id, answer, { reason }) => decided(client, id, answer, reason === undefined ? {} : { reason }),
  tokens: {
    issue: ({ caller: _self, workspaces = [], ...options } = {}) => {
      const folders = workspaces === "any" ? workspaces : workspaces.map((folder) => resolve(folder))
      return told<IssuedToken>(client.tokens.create({ ...options, workspaces: folders } as CreateToken))
    },
    list: ({ tenant } = {}) =>
      told<readonly TokenListing[]>(client.tokens.list(tenant === undefined ? {} : { tenant })),
    revoke: (id, { tenant } = {}) => told<undefined>(client.tokens.revoke(id, tenant === undefined ? {} : { tenant })),
  },
  grants: {
    create: ({ caller: _self, workspace, ...grant }) => {
      if (workspace === undefined) return Promise.resolve({ ok: false as const, error: unnamed })
      const body = { ...grant, workspace: workspace === "any" ? workspace : resolve(workspace) }
      return told<GrantListing>(client.ask("createGrant", { body }))
    },
    list: () => told<readonly GrantListing[]>(client.ask("listGrants", {}).then(({ grants }) => grants)),
    revoke: (id) => told<undefined>(client.ask("revokeGrant", { params: { id } })),
  },
  secrets: {
    set: (slug, value, options = {}) => told<undefined>(client.secrets.set({ slug, value, ...placeOf(options) })),
    remove: (id, options = {}) => told<boolean>(client.secrets.remove(id, placeOf(options))),
    list: () => told<readonly SecretListing[]>(client.secrets.list()),
  },
})
