/**
 * Tokens that were captured at the proxy, in the vault: one entry for each driver, workspace and user.
 *
 * Guarantees: one at a time renews or changes them, across processes; what `keep` says it kept is in the vault. They reach
 * a provider's endpoints through the proxy of their own owner and nobody else: no driver can name the entry as a secret.
 * Does not: keep more than one entry may hold; the oldest logins give way.
 */
import { createHash } from "node:crypto"
import { join } from "node:path"
import type { TokenKeep, TokenLogin } from "../../egress-proxy/tokens/held.ts"
import { loginLocksFolder } from "../../data-folder/paths.ts"
import { fileLock } from "../data/file-lock.ts"
import { vaultLimits } from "../limits.ts"
import { Secret } from "./secret.ts"
import type { SecretUse, Vault, VaultAnswer } from "./vault.ts"

const CAPTURED = "caisson/captured-tokens"

/** A name that is the host's own: no driver, whatever it declares, is given what lies there. */
export const isHostsOwn = (slug: string): boolean => slug.startsWith("caisson/")

const KINDS = ["access", "refresh", "id"]
const isLogin = (value: unknown): value is TokenLogin => {
  const { id, at, tokens } = (value ?? {}) as Partial<TokenLogin>
  return (
    typeof id === "string" &&
    typeof at === "number" &&
    Array.isArray(tokens) &&
    tokens.every(
      ({ kind, placeholder, value: token }) =>
        KINDS.includes(kind) && typeof token === "string" && placeholder.startsWith("caisson-"),
    )
  )
}

const read = async (vault: Vault, owner: SecretUse): Promise<VaultAnswer<readonly TokenLogin[]>> => {
  const found = await vault.get(CAPTURED, owner)
  if (!found.ok) return found
  if (found.value === undefined) return { ok: true, value: [] }
  try {
    const held = JSON.parse(found.value.reveal()) as unknown
    return { ok: true, value: Array.isArray(held) ? held.filter(isLogin) : [] }
  } catch {
    return { ok: true, value: [] }
  }
}

/** As many as one entry holds, the newest first; undefined where not even that one fits. */
const entryOf = (logins: readonly TokenLogin[]): Secret | undefined => {
  for (let count = logins.length; count > 0; count -= 1) {
    const text = JSON.stringify(logins.slice(0, count))
    if (Buffer.byteLength(text) <= vaultLimits.valueBytes.value) return new Secret(text)
  }
  return undefined
}

interface KeepParts {
  readonly data: string
  readonly vault: Vault
  /** told of each login that was kept */
  readonly onKept?: (login: TokenLogin) => Promise<unknown>
}

export const openTokenKeep = async (
  { data, vault, onKept }: KeepParts,
  { driver, workspace, user }: SecretUse,
): Promise<VaultAnswer<TokenKeep>> => {
  const owner = { driver, workspace, user }
  const name = createHash("sha256")
    .update(JSON.stringify([driver, workspace, user]))
    .digest("hex")
  const lockFile = join(loginLocksFolder(data), `${name.slice(0, 32)}.tokens`)
  const first = await read(vault, owner)
  if (!first.ok) return first
  return {
    ok: true,
    value: {
      logins: first.value,
      turn: async () => {
        const lock = await fileLock(lockFile, { waitMs: vaultLimits.tokenTurnMs.value })
        if (lock === undefined) return undefined
        const now = await read(vault, owner).catch(() => undefined)
        if (now === undefined || !now.ok) {
          lock[Symbol.dispose]()
          return undefined
        }
        return {
          logins: now.value,
          keep: async (logins, changed) => {
            const entry = entryOf(logins)
            const kept =
              entry === undefined ? undefined : await vault.set(CAPTURED, owner, entry).catch(() => undefined)
            if (kept?.ok !== true) return false
            await onKept?.(changed).catch(() => undefined)
            return true
          },
          [Symbol.asyncDispose]: async () => lock[Symbol.dispose](),
        }
      },
    },
  }
}

/** When the newest tokens of this owner end, where a provider told it; epoch milliseconds. */
export const capturedEnd = async (vault: Vault, owner: SecretUse): Promise<number | undefined> => {
  const found = await read(vault, owner)
  return found.ok ? found.value.toSorted((a, b) => b.at - a.at)[0]?.expiresAt : undefined
}
