/**
 * The vault in a HashiCorp-compatible server, key-value engine version 2.
 *
 * Guarantees: as `vault.ts` says. A value is fetched when a call is bound and kept nowhere; names are remembered for a few
 * seconds, so that listing tools is not a request for each. What the engine holds that this host would not have written is
 * passed over. A secret that is removed is removed with its versions.
 * Does not: rotate keys, which are the server's own.
 */
import type { Failure } from "../../failure.ts"
import { kvLimits, vaultLimits } from "../../limits.ts"
import type { KvSettings } from "../../config/types.ts"
import { Secret } from "../secret.ts"
import { isSlug, type SecretName, type SecretScope, type Vault, type VaultAnswer, valueFault } from "../vault.ts"
import { createKvClient, type KvAnswer, type KvRequest } from "./client.ts"
import { placeOf, scopeOf } from "./places.ts"

const odd = (what: string): Failure => ({
  ok: false,
  code: "internal",
  message: `the vault answered ${what}`,
  hint: "see that `vault.kv.mount` names a key-value engine of version 2",
  details: {},
})

const at = (body: unknown, ...path: readonly string[]): unknown => {
  let value = body
  for (const key of path) {
    if (typeof value !== "object" || value === null || !Object.hasOwn(value, key)) return undefined
    value = (value as Record<string, unknown>)[key]
  }
  return value
}

export const openKvVault = (settings: KvSettings): Vault & AsyncDisposable => {
  const client = createKvClient(settings)
  const mount = settings.mount.split("/")
  const prefix = settings.prefix.split("/")
  let known: { readonly names: Promise<VaultAnswer<readonly SecretName[]>>; readonly atMs: number } | undefined

  const ask = (method: KvRequest["method"], part: "data" | "metadata", path: readonly string[], body?: object) =>
    client.ask({ method, path: [...mount, part, ...prefix, ...path], ...(body === undefined ? {} : { body }) })
  const failure = (answer: KvAnswer, what: string): Failure =>
    answer.ok ? odd(`${answer.status} when it was asked to ${what}`) : answer.failure

  /** Names in a folder of the engine; those of folders end in `/`. */
  const keysIn = async (path: readonly string[]): Promise<VaultAnswer<readonly string[]>> => {
    const answer = await ask("LIST", "metadata", path)
    if (answer.ok && answer.status === 404) return { ok: true, value: [] }
    const keys = answer.ok && answer.status === 200 ? at(answer.body, "data", "keys") : undefined
    if (!Array.isArray(keys) || !keys.every((key) => typeof key === "string")) return failure(answer, "list names")
    return { ok: true, value: keys }
  }

  const readNames = async (): Promise<VaultAnswer<readonly SecretName[]>> => {
    let folders = 0
    const walk = async (
      scope: SecretScope,
      path: readonly string[],
      group: string,
    ): Promise<VaultAnswer<SecretName[]>> => {
      if (++folders > kvLimits.folders.value)
        return odd(`more than ${kvLimits.folders.value} folders below ${settings.prefix}`)
      const keys = await keysIn(path)
      if (!keys.ok) return keys
      const found: SecretName[] = []
      for (const key of keys.value) {
        const slug = `${group}${key}`
        if (key.endsWith("/")) {
          if (group !== "") continue
          const below = await walk(scope, [...path, key.slice(0, -1)], key)
          if (!below.ok) return below
          found.push(...below.value)
        } else if (isSlug(slug)) found.push({ slug, scope })
      }
      return { ok: true, value: found }
    }
    const scopes = await keysIn([])
    if (!scopes.ok) return scopes
    const names: SecretName[] = []
    for (const key of scopes.value) {
      const scope = key.endsWith("/") ? scopeOf(key.slice(0, -1)) : undefined
      if (scope === undefined) continue
      const found = await walk(scope, [key.slice(0, -1)], "")
      if (!found.ok) return found
      names.push(...found.value)
      if (names.length > vaultLimits.entries.value) return odd(`more than ${vaultLimits.entries.value} secrets`)
    }
    return { ok: true, value: names }
  }

  const list = (): Promise<VaultAnswer<readonly SecretName[]>> => {
    const nowMs = performance.now()
    if (known !== undefined && nowMs - known.atMs < kvLimits.namesMs.value) return known.names
    const names = readNames()
    const mine = { names, atMs: nowMs }
    known = mine
    void names.then((answer) => {
      if (!answer.ok && known === mine) known = undefined
    })
    return names
  }
  /** Undefined: nothing was ever there. An engine may take no writing that does not say what it replaces. */
  const versionAt = async (place: readonly string[]): Promise<VaultAnswer<number | undefined>> => {
    const answer = await ask("GET", "metadata", place)
    if (answer.ok && answer.status === 404) return { ok: true, value: undefined }
    const version = answer.ok && answer.status === 200 ? at(answer.body, "data", "current_version") : undefined
    return typeof version === "number" ? { ok: true, value: version } : failure(answer, "look for a secret")
  }
  const notASlug = (slug: string): Failure => valueFault(slug, new Secret("x")) ?? odd("nothing")

  return Object.freeze({
    async get(slug: string, scope: SecretScope): Promise<VaultAnswer<Secret | undefined>> {
      const place = placeOf(slug, scope)
      if (place === undefined) return { ok: true, value: undefined }
      const answer = await ask("GET", "data", place)
      if (answer.ok && answer.status === 404) return { ok: true, value: undefined }
      const value = answer.ok && answer.status === 200 ? at(answer.body, "data", "data", "value") : undefined
      if (typeof value !== "string") return failure(answer, `read ${slug}, without a \`value\``)
      const secret = new Secret(value)
      return valueFault(slug, secret) ?? { ok: true, value: secret }
    },
    async set(slug: string, scope: SecretScope, value: Secret): Promise<VaultAnswer<undefined>> {
      const wrong = valueFault(slug, value)
      if (wrong !== undefined) return wrong
      const place = placeOf(slug, scope) ?? []
      for (let tries = 1; ; tries++) {
        const version = await versionAt(place)
        if (!version.ok) return version
        const body = { options: { cas: version.value ?? 0 }, data: { value: value.reveal() } }
        const answer = await ask("POST", "data", place, body)
        known = undefined
        if (answer.ok && answer.status === 200) return { ok: true, value: undefined }
        // Somebody else has written it since it was looked at.
        const isRaced = answer.ok && answer.status === 400 && tries < kvLimits.writes.value
        if (!isRaced) return failure(answer, `keep ${slug}`)
      }
    },
    async delete(slug: string, scope: SecretScope): Promise<VaultAnswer<boolean>> {
      const place = placeOf(slug, scope)
      if (place === undefined) return notASlug(slug)
      const found = await versionAt(place)
      if (!found.ok) return found
      if (found.value === undefined) return { ok: true, value: false }
      const answer = await ask("DELETE", "metadata", place)
      known = undefined
      return answer.ok && (answer.status === 204 || answer.status === 200)
        ? { ok: true, value: true }
        : failure(answer, `remove ${slug}`)
    },
    list,
    rotate: (): Promise<VaultAnswer<undefined>> =>
      Promise.resolve({
        ok: false,
        code: "input_invalid",
        message: `the keys of the vault at ${settings.address} are that server's own`,
        hint: "rotate them there, as with `vault operator rotate`",
        details: {},
      }),
    [Symbol.asyncDispose]: () => client[Symbol.asyncDispose](),
  })
}
