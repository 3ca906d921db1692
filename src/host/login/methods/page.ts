/**
 * `login.url` and `refresh.url` of a driver that no OAuth provider is described for (AIP-30): a page where a person does
 * what the service wants, and an address that gives newer credentials for those of now.
 *
 * Guarantees: what the page gives goes from the person into the vault and nowhere else. A refresh is asked with the driver's
 * own credentials, at the origin that they are for; what it answers is durable before anyone is told. Only an answer that
 * says no is a refusal. A page that sends a person back with a code is no page for this: whoever takes the code to the
 * provider must know it (AUTH.md, `logins`).
 */
import { slugOfEnv } from "../../../manifest/contracts/secrets.ts"
import { hasCredentialsFor } from "../../drivers/proof-request.ts"
import type { RegisteredDriver } from "../../registry/types.ts"
import { Secret } from "../../secrets/secret.ts"
import type { FlowFailed, LoginDesk, LoginFlow, LoginMethod, RefreshFlow } from "../flow.ts"
import { guarded, keepTokens, readTokens, slugOfTokens } from "../oauth/kept-tokens.ts"

const cancelled = (what: string): FlowFailed => ({ ok: false, why: "cancelled", message: `${what} was not given` })

/** Those that are missing; else all that the page could give anew. */
const wanted = ({ lacks, driver }: LoginDesk): LoginDesk["lacks"] =>
  lacks.length > 0 ? lacks : (driver.contract.auth?.state.env ?? []).map((name) => ({ name, slug: slugOfEnv(name) }))

const loginBy = (url: string, comesBack: boolean): LoginFlow => ({
  method: "page",
  needs: ["open", "answer"],
  run: async (desk) => {
    const { person, signal, kept, driver } = desk
    if (comesBack)
      return {
        ok: false,
        why: "broken",
        message: "its page sends a person back with a code, and nothing says where the code is to be taken",
        fix: "describe the provider in an AUTH.md beside the driver, or in `logins` of caisson.yaml",
      }
    person.open?.({ url, from: "host" })
    desk.tell({ at: "waiting", for: "person" })
    const secrets = wanted(desk)
    if (secrets.length === 0) {
      const done = await person.answer?.({ id: "done", text: "Done there?", type: "boolean", default: "yes" }, signal)
      return done === undefined || /^(?:n|no|false)$/i.test(done) ? cancelled("a yes") : { ok: true }
    }
    for (const { name, slug } of secrets) {
      const text = `${name} for ${driver.key}, as the page gives it`
      const value = await person.answer?.({ id: slug, text, type: "secret" }, signal)
      if (value === undefined || value === "") return cancelled(name)
      const set = await kept.set(slug, new Secret(value))
      if (!set.ok)
        return { ok: false, why: "broken", message: set.message, ...(set.hint === undefined ? {} : { fix: set.hint }) }
    }
    return { ok: true }
  },
})

interface Newer {
  readonly access_token: string
  readonly refresh_token?: string
  readonly expires_in?: number
}

/** As a token's endpoint answers (RFC 6749 §5.1); undefined: it gave nothing new, and took the old on. */
const newerIn = (body: string): Newer | undefined => {
  let told: unknown
  try {
    told = JSON.parse(body)
  } catch {
    return undefined
  }
  if (typeof told !== "object" || told === null) return undefined
  const { access_token: token, refresh_token: next, expires_in: seconds } = told as Record<string, unknown>
  if (typeof token !== "string" || !/^[\u0021-\u007e]{1,8192}$/.test(token)) return undefined
  return {
    access_token: token,
    ...(typeof next === "string" && next !== "" ? { refresh_token: next } : {}),
    ...(typeof seconds === "number" && seconds > 0 ? { expires_in: seconds } : {}),
  }
}

const refreshBy = (driver: RegisteredDriver, url: string): RefreshFlow => ({
  method: "address",
  run: async (desk) =>
    await guarded(desk, async () => {
      const { host } = new URL(url)
      const asked = await desk.ask({ method: "POST", url }, desk.signal)
      if (!asked.ok)
        return {
          ok: false as const,
          why: "unreachable" as const,
          message: `${host} could not be asked: ${asked.reason}`,
        }
      const { status, body } = asked
      if (status < 200 || status > 299) {
        const isRefusal = status === 400 || status === 401 || status === 403
        const why = isRefusal ? ("refused" as const) : ("unreachable" as const)
        return { ok: false as const, why, message: `the refresh at ${host} was answered ${status}` }
      }
      const newer = newerIn(body)
      const slug = slugOfTokens(driver, {})
      if (newer === undefined || slug === undefined) return { ok: true as const }
      const before = await readTokens(desk, slug)
      if (before !== undefined && "ok" in before) return before
      const kept = await keepTokens(desk, slug, newer, before)
      return "ok" in kept ? kept : { ok: true as const, ...kept }
    }),
})

export const pageMethod: LoginMethod = {
  loginOf: ({ contract: { auth } }) =>
    auth?.login?.url === undefined || auth.login.cmd !== undefined
      ? undefined
      : loginBy(auth.login.url, auth.login.requiresCallbackUrl),
  // The host has no credentials of programs and modules that it could send.
  refreshOf: (driver) => {
    const { auth } = driver.contract
    return auth?.refresh?.via === "url" && hasCredentialsFor(driver.contract, auth.refresh.url)
      ? refreshBy(driver, auth.refresh.url)
      : undefined
  },
}
