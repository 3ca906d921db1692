/**
 * Names → addresses, the way the default proxy asks: the host's own hosts file, then its DNS servers.
 *
 * Guarantees: answers for the name as it is, with no search domain put behind it; both families are asked, so that
 * both are vetted; each question has its own time limit and takes no thread, so that one sandbox's slow names hold up
 * nobody else. A name that neither knows is a rejection.
 * Aliases (CNAME) are told as far as the servers say; what counts is the address they end in.
 * Assumes: `/etc/resolv.conf` lists the servers; a change is noticed within half a minute.
 * Does not: cache, or ask other name services (mDNS, LDAP).
 */
import { Resolver } from "node:dns/promises"
import { readFile, stat } from "node:fs/promises"
import { setTimeout } from "node:timers/promises"
import { parseIp } from "../policy/address.ts"
import type { Resolve } from "../types.ts"

interface SystemResolverOptions {
  readonly hostsFile?: string
  /** `address:port`; default those of the host */
  readonly servers?: readonly string[]
}

const renewMs = 30_000
/** steps of a chain of aliases that are followed */
const mostSteps = 8
/** for how long a connection whose address is known waits to learn of aliases */
const aliasMs = 250

export function createSystemResolve(options: SystemResolverOptions = {}): Resolve {
  const hosts = createHostsFile(options.hostsFile ?? "/etc/hosts")
  let current: { readonly resolver: Resolver; readonly madeAt: number } | undefined
  const resolver = (): Resolver => {
    const now = performance.now()
    if (current !== undefined && now - current.madeAt < renewMs) return current.resolver
    const made = new Resolver({ timeout: 2_500, tries: 2 })
    if (options.servers !== undefined) made.setServers(options.servers)
    current = { resolver: made, madeAt: now }
    return made
  }
  return async (name) => {
    const local = (await hosts()).get(name)
    if (local !== undefined) return local
    const asked = resolver()
    const aliases: string[] = []
    const followed = follow(asked, name, aliases)
    const answers = await Promise.allSettled([asked.resolve4(name), asked.resolve6(name)])
    const addresses = answers.flatMap((answer) => (answer.status === "fulfilled" ? answer.value : []))
    if (addresses.length === 0) throw new Error(`no address for ${name}`)
    await Promise.race([followed, setTimeout(aliasMs, undefined, { ref: false })])
    return aliases.length === 0 ? addresses : { addresses, aliases: [...aliases] }
  }
}

/** Puts the names behind a name into `chain`, one after the other; where a step is not answered, it ends. */
async function follow(resolver: Resolver, name: string, chain: string[]): Promise<void> {
  for (let at = name; chain.length < mostSteps; ) {
    const [next] = await resolver.resolveCname(at).catch(() => [])
    if (next === undefined || next === name || chain.includes(next)) break
    chain.push(next)
    at = next
  }
}

type Hosts = ReadonlyMap<string, readonly string[]>

/** The hosts file, read again when it changes; a missing one is empty. */
function createHostsFile(path: string): () => Promise<Hosts> {
  let known: { readonly stamp: string; readonly hosts: Hosts } | undefined
  return async () => {
    try {
      const { mtimeMs, size, ino } = await stat(path)
      const stamp = `${mtimeMs} ${size} ${ino}`
      if (known?.stamp !== stamp) known = { stamp, hosts: parseHosts(await readFile(path, "utf8")) }
      return known.hosts
    } catch {
      return new Map()
    }
  }
}

export function parseHosts(text: string): Hosts {
  const hosts = new Map<string, string[]>()
  for (const line of text.split("\n")) {
    const [address = "", ...names] = line
      .replace(/#.*/, "")
      .split(/[ \t\r]+/)
      .filter((word) => word !== "")
    if (parseIp(address) === undefined) continue
    for (const name of names.map((word) => word.toLowerCase())) hosts.set(name, [...(hosts.get(name) ?? []), address])
  }
  return hosts
}

/** One for the process: it holds no answers, only the connection to the servers. */
export const systemResolve: Resolve = createSystemResolve()
