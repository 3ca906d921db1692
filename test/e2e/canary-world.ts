/** One secret for each way that a secret can go, where each is meant to be, and what looks for it everywhere else. */
import { randomBytes } from "node:crypto"
import { lstatSync, readdirSync, readFileSync, readlinkSync } from "node:fs"
import { join } from "node:path"

/** Ways of a secret, by the canary that goes it. */
export const ways = [
  "env",
  "substitute",
  "http",
  "mcp",
  "sdk-client",
  "sdk-argument",
  "api-key",
  "setup-env",
  "setup-secret",
  "setup-output",
  "file",
  "home",
] as const
export type Way = (typeof ways)[number]
/** Those that a sandbox's program is given in its environment. */
export const inEnvironment: readonly string[] = [
  "env",
  "mcp",
  "sdk-argument",
  "api-key",
  "setup-env",
] satisfies readonly Way[]

export interface Canary {
  readonly way: string
  readonly value: string
}

/** With characters that JSON, addresses and HTML write differently, around a word that none of them changes. */
export const newCanaries = (): readonly (Canary & { readonly way: Way })[] =>
  ways.map((way) => ({ way, value: `ck+"/=%&${randomBytes(15).toString("hex")}'<>` }))

/** Letters and digits are the same in UTF-8, JSON, HTML and addresses: a canary's longest run of them stands for it. */
const wordOf = (value: string): string => {
  const [longest = ""] = [...value.matchAll(/[A-Za-z0-9_-]+/g)].map(([run]) => run).sort((a, b) => b.length - a.length)
  return longest
}

/** Each spelling in which it would be found, wherever in a longer text it stands. */
const spellingsOf = (value: string): readonly string[] => {
  const word = Buffer.from(wordOf(value))
  const base64 = [0, 1, 2].map((offset) => {
    const text = Buffer.concat([Buffer.alloc(offset), word])
      .toString("base64")
      .replace(/=+$/, "")
    // Without the characters that neighbours have a part in.
    return text.slice(offset === 0 ? 0 : 4, -2)
  })
  const wide = Buffer.from(word.toString(), "utf16le")
  const hex = word.toString("hex")
  const percent = hex.replace(/../g, "%$&")
  return [
    word.toString("latin1"),
    ...base64,
    ...base64.map((text) => text.replaceAll("+", "-").replaceAll("/", "_")),
    hex,
    hex.toUpperCase(),
    percent,
    percent.toUpperCase(),
    wide.toString("latin1"),
    // A compressed or encrypted form cannot be looked for; one turned around can.
    word.toString("latin1").split("").reverse().join(""),
  ]
}

export interface Hunt {
  /** Ways whose canary is in the bytes. */
  in(bytes: Buffer | string): readonly string[]
}
export const huntFor = (canaries: readonly Canary[]): Hunt => {
  const spelt = canaries.map(({ way, value }) => ({ way, spellings: spellingsOf(value) }))
  return {
    in: (bytes) => {
      const text = typeof bytes === "string" ? Buffer.from(bytes).toString("latin1") : bytes.toString("latin1")
      return spelt.filter(({ spellings }) => spellings.some((each) => text.includes(each))).map(({ way }) => way)
    },
  }
}

const read = <T>(work: () => T, otherwise: T): T => {
  try {
    return work()
  } catch {
    return otherwise
  }
}
const MOST = 64 * 2 ** 20

/** Files below a folder that hold one, and names that do. `spared`: folders where they are meant to be. */
export const foundIn = (hunt: Hunt, folder: string, spared: readonly string[], sinceMs = 0): readonly string[] =>
  read(() => readdirSync(folder, { withFileTypes: true }), []).flatMap((entry) => {
    const path = join(folder, entry.name)
    if (spared.includes(path)) return []
    const named = hunt.in(entry.name).map((way) => `${way} in the name ${path}`)
    if (entry.isDirectory()) return [...named, ...foundIn(hunt, path, spared, sinceMs)]
    if (entry.isSymbolicLink())
      return [...named, ...hunt.in(read(() => readlinkSync(path), "")).map((way) => `${way} in ${path}`)]
    const facts = read(() => lstatSync(path), undefined)
    if (!entry.isFile() || facts === undefined || facts.size > MOST || facts.mtimeMs < sinceMs) return named
    return [...named, ...hunt.in(read(() => readFileSync(path), Buffer.alloc(0))).map((way) => `${way} in ${path}`)]
  })

/**
 * Processes whose command line holds one, and those whose environment does: `WAY where COMMAND`. `inside`: the process is in
 * another process namespace than this one, which only sandboxes are.
 */
export const foundInProcesses = (
  hunt: Hunt,
): readonly { way: string; where: string; inside: boolean; name: string }[] => {
  const own = readlinkSync("/proc/self/ns/pid")
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .flatMap((pid) =>
      (["cmdline", "environ"] as const).flatMap((where) => {
        // Asked first: of one that ends in between nothing is found then, and not something in a place that nobody knows.
        const inside = read(() => readlinkSync(`/proc/${pid}/ns/pid`), own) !== own
        const found = hunt.in(read(() => readFileSync(`/proc/${pid}/${where}`), Buffer.alloc(0)))
        if (found.length === 0) return []
        const name = read(() => readFileSync(`/proc/${pid}/comm`, "utf8").trim(), "gone")
        return found.map((way) => ({ way, where, inside, name }))
      }),
    )
}
