/**
 * What a server's refusal says of the token that it wants (`WWW-Authenticate`, RFC 6750, RFC 9728).
 *
 * Guarantees: pure, total and bounded; what is not of the form that it must have is left out.
 */
import { hostLimits } from "../../limits.ts"
import type { Challenge } from "../resource.ts"

const TOKEN = "[!#$%&'*+.^_`|~0-9A-Za-z-]+"
const PART = String.raw`[\s,]*(?:(${TOKEN})\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s,"]*))|(${TOKEN}))`

/** The parameters of the first challenge of the scheme Bearer. */
const bearerParameters = (header: string): ReadonlyMap<string, string> => {
  const found = new Map<string, string>()
  let scheme: string | undefined
  for (const [, name, quoted, plain, word] of header.matchAll(new RegExp(PART, "gy"))) {
    if (word !== undefined) {
      if (scheme === "bearer") break
      scheme = word.toLowerCase()
    } else if (scheme === "bearer" && name !== undefined && !found.has(name.toLowerCase()))
      found.set(name.toLowerCase(), quoted?.replaceAll(/\\(.)/gs, "$1") ?? plain ?? "")
  }
  return found
}

const SCOPE = /^[!#-[\]-~]{1,256}$/

export const readChallenge = (status: number, headers: Headers): Challenge | undefined => {
  if (status !== 401 && status !== 403) return undefined
  const header = headers.get("www-authenticate") ?? ""
  const said = bearerParameters(header.slice(0, hostLimits.mcpChallengeChars.value))
  const error = said.get("error")
  const metadata = said.get("resource_metadata")
  const scopes = [...new Set((said.get("scope") ?? "").split(" ").filter((scope) => SCOPE.test(scope)))]
  return {
    status,
    ...(error === undefined || !/^[a-z_]{1,64}$/.test(error) ? {} : { error }),
    ...(scopes.length === 0 ? {} : { scopes: scopes.slice(0, hostLimits.mcpScopes.value) }),
    ...(metadata === undefined || !URL.canParse(metadata) ? {} : { metadata }),
  }
}
