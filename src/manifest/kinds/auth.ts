/**
 * `auth` (AIP-29 ⊂ AIP-30) → AuthSpec: what a login leaves, how it is done, proven, kept fresh and found to be gone.
 *
 * Guarantees: a login says how it is done; state paths are reachable in the sandbox (AIP-29 §Auth); `expiry.detect` is
 * typed, and one that is not known or would end every login is reported and detects nothing. Does not: run anything.
 */
import { checkReach, readAddress } from "../values/address.ts"
import type { Context } from "../values/context.ts"
import { createReport, joinPath, shown } from "../values/diagnostics.ts"
import type { EgressEntry } from "../values/egress-entry.ts"
import { defined, flag, object, optionalNumber, optionalObject, optionalText, texts } from "../values/fields.ts"
import { limits } from "../limits.ts"
import { canonicalGlob, globCovers } from "../values/sandbox-globs.ts"
import type { JsonObject } from "../base-types.ts"
import type { CliSpec } from "./cli.ts"
import { type HttpProbe, readProbe } from "./health.ts"
import { type AuthProvider, readProvider } from "./auth-provider.ts"
import { readEvery } from "./waits.ts"

export type LoginProof =
  | { readonly by: "cmd"; readonly cmd: string; readonly exitCode: number }
  | { readonly by: "http"; readonly probe: HttpProbe }

export interface LoginSpec {
  readonly cmd?: string
  /** opened in a browser */
  readonly url?: string
  readonly interactive: boolean
  readonly requiresCallbackUrl: boolean
  /** each must hold before anyone counts as signed in; empty: nothing proves it but the login's own end */
  readonly completesWhen: readonly LoginProof[]
}

export type RefreshSpec = { readonly everyMs?: number } & (
  | { readonly via: "cmd"; readonly cmd: string }
  | { readonly via: "url"; readonly url: string }
)

/** What in a result says that the login is gone. */
export type ExpiryDetector =
  | { readonly by: "exit_code"; readonly code: number }
  | { readonly by: "http_status"; readonly status: number }
  /** the error's name, or that of a class above it */
  | { readonly by: "exception"; readonly name: string }
  | { readonly by: "header"; readonly name: string; readonly value: string }

export interface AuthSpec {
  /** a SECRETS.md; one that leads to an AUTH.md is `provider` */
  readonly ref?: string
  readonly state: { readonly paths: readonly string[]; readonly env: readonly string[] }
  readonly login?: LoginSpec
  /** the AUTH.md beside the driver, or that `ref` leads to */
  readonly provider?: AuthProvider
  readonly refresh?: RefreshSpec
  readonly expiry?: ExpiryDetector
}

function checkLoginUrl(url: string, context: Context): void {
  const address = readAddress(url)
  if (address.ok) return
  // A placeholder of the author's is mended by whoever configures the login; another scheme would be run by a browser.
  const foreign = !/^https?:\/\//i.test(url) && URL.canParse(url)
  const say = context.mode === "strict" || foreign ? context.report.error : context.report.lenient
  say("login-url", "auth.login.url", `\`${shown(url)}\` is not an address`, "write the full `https://…` address")
}

function readProofs(login: JsonObject, egress: readonly EgressEntry[], context: Context): readonly LoginProof[] {
  const when = optionalObject(login, "completes_when")
  if (when === undefined) return []
  const cmd = optionalText(when, "cmd")
  const http = optionalObject(when, "http")
  if (cmd === undefined && http === undefined)
    context.report.error(
      "missing-field",
      "auth.login.completes_when.cmd",
      "`completes_when` says neither `cmd` nor `http`; an exit code alone proves nothing",
      "add `cmd:`",
    )
  return [
    ...(cmd === undefined ? [] : [{ by: "cmd" as const, cmd, exitCode: optionalNumber(when, "exit_code") ?? 0 }]),
    ...(http === undefined
      ? []
      : [{ by: "http" as const, probe: readProbe(http, "auth.login.completes_when.http", egress, context) }]),
  ]
}

function readLogin(
  auth: JsonObject,
  { cli, otherwise }: { readonly cli: boolean; readonly otherwise: boolean },
  egress: readonly EgressEntry[],
  context: Context,
): LoginSpec | undefined {
  const login = optionalObject(auth, "login")
  if (login === undefined) return undefined
  const cmd = optionalText(login, "cmd")
  const url = optionalText(login, "url")
  if (cmd === undefined && !otherwise && (cli || url === undefined))
    context.report.error(
      "missing-field",
      "auth.login.cmd",
      cli ? "a cli driver's login needs `cmd`" : "a login needs `cmd` or `url`",
      "add `cmd:`",
    )
  if (url !== undefined) checkLoginUrl(url, context)
  return defined({
    cmd,
    url,
    interactive: flag(login, "interactive"),
    requiresCallbackUrl: flag(login, "requires_callback_url"),
    completesWhen: readProofs(login, egress, context),
  })
}

/** A state path is a file, or a folder with all that is in it. */
const namesOrHolds = (wide: string, path: string): boolean =>
  [path, path.replace(/\/\*\*$/, ""), `${path}/**`].some((reading) => globCovers(wide, reading))

function checkStatePaths(paths: readonly string[], cli: CliSpec | undefined, context: Context): void {
  if (cli === undefined) return
  const reachable = [...cli.sandbox.fs.read, ...cli.sandbox.fs.write]
  paths.forEach((path, i) => {
    const glob = canonicalGlob(path)
    const at = joinPath("auth.state.paths", i)
    if (!glob.ok) context.report.error("fs-glob", at, `\`${shown(path)}\`: ${glob.message}`, glob.fix)
    else if (!reachable.some((wide) => namesOrHolds(wide, glob.glob))) {
      context.report.error(
        "state-path-unreachable",
        at,
        `the login state \`${shown(path)}\` is not in \`sandbox.fs.read\` or \`sandbox.fs.write\``,
        "add it there",
      )
    }
  })
}

/** Codes and states of success would sign everyone out whenever something worked. */
function parseDetect(detect: string): ExpiryDetector | undefined {
  const [, by, rest = ""] = /^([a-z_]+):(.+)$/.exec(detect) ?? []
  const number = /^\d{1,3}$/.test(rest) ? Number(rest) : 0
  if (by === "exit_code") return number >= 1 && number <= 255 ? { by, code: number } : undefined
  if (by === "http_status") return number >= 300 && number <= 599 ? { by, status: number } : undefined
  if (by === "exception") return /^[A-Za-z_$][\w$.]*$/.test(rest) ? { by, name: rest } : undefined
  const [, name, value] = by === "header" ? (/^([A-Za-z0-9-]+):(.+)$/.exec(rest) ?? []) : []
  return name === undefined || value === undefined ? undefined : { by: "header", name: name.toLowerCase(), value }
}

function readExpiry(auth: JsonObject, context: Context): ExpiryDetector | undefined {
  const detect = optionalText(object(auth, "expiry"), "detect")
  const detector = detect === undefined ? undefined : parseDetect(detect)
  if (detect !== undefined && detector === undefined)
    context.report.warn(
      "expiry-unknown",
      "auth.expiry.detect",
      `\`${shown(detect)}\` is not a form this host knows; expiry is not detected by it`,
      "write `exit_code:N`, `http_status:N`, `exception:Name` or `header:NAME:VALUE`",
    )
  return detector
}

function readRefresh(auth: JsonObject, context: Context): RefreshSpec | undefined {
  const refresh = optionalObject(auth, "refresh")
  if (refresh === undefined) return undefined
  const every = defined({ everyMs: readEvery(refresh, limits.refreshEveryMs, "auth.refresh", context) })
  const cmd = optionalText(refresh, "cmd")
  const url = optionalText(refresh, "url")
  if (cmd !== undefined && url !== undefined)
    context.report.warn(
      "refresh-twice",
      "auth.refresh.url",
      "the refresh says `cmd` and `url`; `cmd` is what is done",
      "keep one of them",
    )
  if (cmd !== undefined) return { ...every, via: "cmd", cmd }
  if (url !== undefined) {
    const address = readAddress(url)
    if (!address.ok)
      context.report.error("bad-value", "auth.refresh.url", address.message, "write the full `https://…` address")
    return { ...every, via: "url", url }
  }
  context.report.warn(
    "refresh-empty",
    "auth.refresh",
    "the refresh says neither `cmd` nor `url`; nothing is refreshed",
    "add `cmd:`, or remove the block",
  )
  return undefined
}

const namesProvider = (ref: string): boolean => /(?:^|\/)AUTH\.md$/.test(ref)

/** What its users log in to. One that is there and cannot be read is no login at all. */
function readLinked(
  ref: string | undefined,
  egress: readonly EgressEntry[],
  context: Context,
): AuthProvider | undefined {
  const { links, file, mode, report } = context
  const found = links?.provider(file, ref)
  if (found === undefined) {
    if (ref !== undefined && links !== undefined)
      report.error(
        "auth-ref-unresolvable",
        "auth.ref",
        `\`${shown(ref)}\` leads to no AUTH.md`,
        "add it, or correct the path",
      )
    return undefined
  }
  const own = createReport(found.file)
  const provider =
    found.front === undefined ? undefined : readProvider(found.front, { file: found.file, mode, report: own })
  if (provider === undefined)
    report.error(
      "auth-provider-invalid",
      "auth",
      `its login is described in ${shown(found.file, 200)}, which has errors`,
      "mend that file; its own messages say how",
    )
  for (const address of [
    provider?.apiBase,
    provider?.issuer,
    ...Object.values<string | undefined>({ ...provider?.endpoints }),
  ])
    if (address !== undefined) checkReach(new URL(address), "network.egress", egress, context)
  return provider
}

export function readAuth(
  front: JsonObject,
  cli: CliSpec | undefined,
  egress: readonly EgressEntry[],
  context: Context,
): AuthSpec | undefined {
  const auth = optionalObject(front, "auth")
  if (auth === undefined) return undefined
  const state = object(auth, "state")
  checkStatePaths(texts(state, "paths"), cli, context)
  const ref = optionalText(auth, "ref")
  const linked = ref !== undefined && namesProvider(ref) ? ref : undefined
  const provider = readLinked(linked, egress, context)
  // An AUTH.md, or a function of its own, logs in without a command.
  const otherwise = provider !== undefined || context.code !== undefined
  return defined({
    ref: linked === undefined ? ref : undefined,
    provider,
    state: { paths: texts(state, "paths"), env: texts(state, "env") },
    login: readLogin(auth, { cli: cli !== undefined, otherwise }, egress, context),
    refresh: readRefresh(auth, context),
    expiry: readExpiry(auth, context),
  })
}
