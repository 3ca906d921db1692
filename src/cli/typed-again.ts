/**
 * Commands that are told to whoever typed one, so that they can be typed as they stand: with the same `--manifests`.
 *
 * Guarantees: words for people alone (`hint`, `fix`) are changed, and in them commands in backticks that take the option and
 * do not have it yet. What a tool answered is left as it is.
 */
import type { Host } from "../host/types.ts"

/** The commands that take `--manifests`; a test compares with what the program knows. */
export const takingManifests = [
  ...[
    "call",
    "why",
    "tools",
    "drivers",
    "install",
    "learn",
    "conform",
    "questions",
    "review",
    "prune",
    "serve",
    "mcp",
    "grants create",
    "secrets set",
    "secrets rm",
  ],
  ...["auth", "login", "logout"],
  ...["approvals", "approvals show", "approvals approve", "approvals deny"],
]

export const quoted = (word: string): string =>
  /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`

/** One command, without backticks. */
export const typedAgain = (command: string, manifests: readonly string[] = []): string =>
  command.includes(" --manifests ")
    ? command
    : [command, ...manifests.map((folder) => `--manifests ${quoted(folder)}`)].join(" ")

const COMMAND = new RegExp(`\`(caisson (?:${takingManifests.join("|")})(?: [^\`]*)?)\``, "g")

/** The same words, whose commands name the folders of manifests that this command was given. */
export const completed = (text: string, manifests: readonly string[] = []): string =>
  text.replaceAll(COMMAND, (_, command: string) => `\`${typedAgain(command, manifests)}\``)

/** Not the host's words: what a tool answered, what it is sealed in, and what manifests hold. */
const OTHERS = new Set(["value", "contract", "profile", "offer"])

const toldAgain = (answer: unknown, manifests: readonly string[]): unknown => {
  if (Array.isArray(answer)) return answer.map((each) => toldAgain(each, manifests))
  if (typeof answer !== "object" || answer === null) return answer
  return Object.fromEntries(
    Object.entries(answer).map(([key, value]: [string, unknown]) => {
      if (OTHERS.has(key)) return [key, value]
      if ((key === "hint" || key === "fix") && typeof value === "string") return [key, completed(value, manifests)]
      return [key, toldAgain(value, manifests)]
    }),
  )
}

type Functions = Record<string | symbol, unknown>
const telling = (target: Functions, manifests: readonly string[]): Functions =>
  new Proxy<Functions>(
    {},
    {
      get: (_, key) => {
        const value = target[key]
        if (typeof value === "object" && value !== null) return telling(value as Functions, manifests)
        if (typeof value !== "function") return value
        return (...words: readonly unknown[]): unknown => {
          const answer: unknown = Reflect.apply(value, target, words)
          return answer instanceof Promise
            ? answer.then((told) => toldAgain(told, manifests))
            : toldAgain(answer, manifests)
        }
      },
    },
  )

/** The same host, whose hints name the folders of manifests that this command was given. */
export const hostTyped = (host: Host, manifests: readonly string[] = []): Host =>
  manifests.length === 0 ? host : (telling(host as unknown as Functions, manifests) as unknown as Host)
