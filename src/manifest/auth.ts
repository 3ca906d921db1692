/**
 * `auth` (AIP-29 ⊂ AIP-30) → AuthSpec.
 *
 * Guarantees: a login says how it is done; state paths are reachable in the sandbox (AIP-29 §Auth); `expiry.detect`
 * has a known form or is reported. Does not: run anything.
 */
import type { Context } from "./context.ts"
import { joinPath, shown } from "./diagnostics.ts"
import { defined, object, optionalObject, optionalText, text, texts } from "./fields.ts"
import { canonicalGlob, globCovers } from "./sandbox-globs.ts"
import type { AuthSpec, CliSpec, JsonObject } from "./types.ts"

const EXPIRY = /^(?:exit_code:\d{1,3}|http_status:[1-5]\d\d|exception:[A-Za-z_$][\w$.]*|header:[A-Za-z0-9-]+:.+)$/

function checkLogin(login: JsonObject | undefined, cli: boolean, context: Context): void {
  if (login === undefined) return
  const { report } = context
  if (login["cmd"] === undefined && (cli || login["url"] === undefined)) {
    report.error(
      "missing-field",
      "auth.login.cmd",
      cli ? "a cli driver's login needs `cmd`" : "a login needs `cmd` or `url`",
      "add `cmd:`",
    )
  }
  const url = optionalText(login, "url")
  if (url === undefined || URL.canParse(url.replaceAll(/\$\{[^}]*\}/g, "x"))) {
    if (url === undefined || !/[…\s]/.test(url)) return
  }
  const say = context.mode === "strict" ? report.error : report.lenient
  say("login-url", "auth.login.url", `\`${shown(url)}\` is not an address`, "write the full `https://…` address")
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

export function readAuth(front: JsonObject, cli: CliSpec | undefined, context: Context): AuthSpec | undefined {
  const auth = optionalObject(front, "auth")
  if (auth === undefined) return undefined
  const state = object(auth, "state")
  const login = optionalObject(auth, "login")
  checkLogin(login, cli !== undefined, context)
  checkStatePaths(texts(state, "paths"), cli, context)
  const detect = optionalText(object(auth, "expiry"), "detect")
  if (detect !== undefined && !EXPIRY.test(detect)) {
    context.report.warn(
      "expiry-unknown",
      "auth.expiry.detect",
      `\`${shown(detect)}\` is not a form this host knows; expiry is not detected by it`,
      "write `exit_code:N`, `http_status:N`, `exception:Name` or `header:NAME:VALUE`",
    )
  }
  const refresh = optionalObject(auth, "refresh")
  if (refresh !== undefined && refresh["cmd"] === undefined && refresh["url"] === undefined) {
    context.report.warn(
      "refresh-empty",
      "auth.refresh",
      "the refresh says neither `cmd` nor `url`; nothing is refreshed",
      "add `cmd:`, or remove the block",
    )
  }
  return defined({
    ref: optionalText(auth, "ref"),
    state: { paths: texts(state, "paths"), env: texts(state, "env") },
    login,
    refresh: refresh?.["cmd"] === undefined && refresh?.["url"] === undefined ? undefined : refresh,
    expiry: detect === undefined ? undefined : { detect: text(object(auth, "expiry"), "detect") },
  })
}
