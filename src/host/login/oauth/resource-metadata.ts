/**
 * What a resource publishes of itself (RFC 9728): whose tokens it takes, what they are for, what can be asked for.
 *
 * Guarantees: read from the address that its refusal names, else from its well-known places, over the login's own way. The
 * tokens are for the resource that was asked and for nothing else: metadata that names another one is refused. Servers are
 * https addresses without credentials, query or fragment. All of it is a stranger's word until it was checked here.
 */
import { isObject } from "../../../manifest/values/fields.ts"
import { shown } from "../../../manifest/values/diagnostics.ts"
import { fetchOver } from "../../drivers/fetch-over.ts"
import type { Challenge } from "../../drivers/resource.ts"
import { loginWebLimits } from "../../limits.ts"
import type { FlowFailed, LoginDesk } from "../flow.ts"
import { isFailed } from "./failed.ts"

export interface Resource {
  /** where it was published; absent: it publishes nothing */
  readonly metadata?: string
  /** as it is published, to the letter; absent: it does not say */
  readonly id?: string
  readonly servers: readonly string[]
  readonly scopes: readonly string[]
}

export const broken = (message: string, fix?: string): FlowFailed => ({
  ok: false,
  why: "broken",
  message,
  ...(fix === undefined ? {} : { fix }),
})

const textsIn = (value: unknown): readonly string[] =>
  Array.isArray(value) ? value.filter((each): each is string => typeof each === "string") : []

const isScope = (text: string): boolean => /^[!#-[\]-~]{1,256}$/.test(text)

export const isPlainHttps = (text: string): boolean => {
  const url = URL.parse(text)
  return (
    url?.protocol === "https:" && url.username === "" && url.password === "" && url.search === "" && url.hash === ""
  )
}

/** JSON at an address; undefined: there is none. */
export const published = async (
  desk: LoginDesk,
  url: URL,
): Promise<{ readonly response: Response; readonly json: unknown } | FlowFailed | undefined> => {
  const response = await fetchOver(desk)(url, { headers: { accept: "application/json" } })
  if (response.status >= 500 || response.status === 429)
    return { ok: false, why: "unreachable", message: `${url.host} answered ${response.status}`, fix: "try again later" }
  if (response.status !== 200) return undefined
  try {
    return { response: response.clone(), json: (await response.json()) as unknown }
  } catch {
    return broken(`${url.host} publishes no JSON at ${url.pathname}`)
  }
}

/** Its own address, or one above it. */
const covers = (resource: string, server: URL): boolean => {
  const url = URL.parse(resource)
  if (url === null || url.origin !== server.origin || resource.includes("#") || url.search !== "") return false
  const folder = url.pathname.endsWith("/") ? url.pathname : `${url.pathname}/`
  return url.pathname === server.pathname || server.pathname.startsWith(folder)
}

const readResource = (json: unknown, metadata: URL, server: URL): Resource | FlowFailed => {
  if (!isObject(json)) return broken(`${metadata.host} publishes no metadata of a resource`)
  const id: unknown = json["resource"]
  if (typeof id !== "string" || !covers(id, server))
    return broken(
      `the service says that its tokens are for \`${shown(String(id), 100)}\`, and it is ${server.href}: the login was not begun`,
      "see that the driver names the service by its own address",
    )
  const servers = textsIn(json["authorization_servers"]).filter(isPlainHttps)
  if (servers.length === 0) return broken(`${server.host} names no authorization server that could be asked`)
  return {
    metadata: metadata.href,
    id,
    servers: servers.slice(0, loginWebLimits.servers.value),
    scopes: textsIn(json["scopes_supported"]).filter(isScope).slice(0, loginWebLimits.scopes.value),
  }
}

/** At an address that is known; what is not there any more is refused. */
const resourceAt = async (desk: LoginDesk, metadata: string, server: URL): Promise<Resource | FlowFailed> => {
  if (URL.parse(metadata)?.protocol !== "https:") return broken(`${server.host} names no https address of its metadata`)
  const url = new URL(metadata)
  const found = await published(desk, url)
  if (found === undefined) return broken(`${url.host} publishes nothing at ${shown(url.pathname, 100)}`)
  return isFailed(found) ? found : readResource(found.json, url, server)
}

/** A service of the first days of the protocol publishes nothing: it is its own authorization server. */
export const findResource = async (
  desk: LoginDesk,
  server: URL,
  challenge: Pick<Challenge, "metadata"> = {},
): Promise<Resource | FlowFailed> => {
  if (challenge.metadata !== undefined) return await resourceAt(desk, challenge.metadata, server)
  const path = server.pathname === "/" ? "" : server.pathname
  for (const suffix of new Set([path, ""])) {
    const url = new URL(`/.well-known/oauth-protected-resource${suffix}`, server)
    const found = await published(desk, url)
    if (found !== undefined) return isFailed(found) ? found : readResource(found.json, url, server)
  }
  return { servers: [server.origin], scopes: [] }
}
