/** Where this machine's npm registry is: perhaps a mirror, at an address that nobody reaches by a name of its own choice. */
import { lookup } from "node:dns/promises"

const REGISTRY = "registry.npmjs.org"

/** `registry.npmjs.org: "address:443"`, for `egress.services` of a config; undefined where it cannot be reached. */
export const publicRegistry = async (): Promise<string | undefined> => {
  try {
    const { ok } = await fetch(`https://${REGISTRY}/@modelcontextprotocol%2fserver-memory`, {
      method: "HEAD",
      signal: AbortSignal.timeout(15_000),
    })
    return ok ? `${REGISTRY}: "${(await lookup(REGISTRY, 4)).address}:443"` : undefined
  } catch {
    return undefined
  }
}
