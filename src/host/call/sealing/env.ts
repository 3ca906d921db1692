/**
 * The call's environment, built from nothing.
 *
 * Guarantees: no variable of the host's own process reaches a tool. `env.pass` takes values from the operator's `env`
 * alone, `env.set` beats it, and what the sandbox itself needs (PATH, HOME, TMPDIR, the proxy) beats both (C-49). Pure.
 */
import type { CliSandbox } from "../../../manifest/types.ts"
import { inside } from "../../drivers/paths.ts"

const PATH = "/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin:/usr/games"
const virtual = new Set(["PATH", "HOME", "TMPDIR", "TMP", "TEMP", "USER", "LOGNAME", "PWD", "LANG", "TERM", "TZ"])

const proxyEnv = (port: number | undefined): Record<string, string> => {
  if (port === undefined) return {}
  const url = `http://127.0.0.1:${port}`
  const named = { HTTP_PROXY: url, HTTPS_PROXY: url, ALL_PROXY: url, NO_PROXY: "" }
  const lower = Object.fromEntries(Object.entries(named).map(([name, value]) => [name.toLowerCase(), value]))
  return { ...named, ...lower, NODE_USE_ENV_PROXY: "1" }
}

interface SealedEnv {
  readonly env: Readonly<Record<string, string>>
  /** names whose values came from the operator's config */
  readonly passed: readonly string[]
  readonly notes: readonly string[]
}

export const sealEnv = (
  declared: CliSandbox["env"],
  operator: Readonly<Record<string, string>>,
  tty: boolean,
  proxyPort: number | undefined,
): SealedEnv => {
  const wanted = declared.pass.filter((name) => !virtual.has(name))
  const passed = wanted.filter((name) => Object.hasOwn(operator, name))
  const missing = wanted.filter((name) => !Object.hasOwn(operator, name))
  const env = {
    LANG: "C.UTF-8",
    TZ: operator["TZ"] ?? "UTC",
    ...(tty ? { TERM: "xterm-256color" } : {}),
    ...Object.fromEntries(passed.map((name) => [name, operator[name] as string])),
    ...declared.set,
    PATH,
    HOME: inside.home,
    TMPDIR: inside.scratch,
    USER: inside.user,
    LOGNAME: inside.user,
    ...proxyEnv(proxyPort),
  }
  return {
    env,
    passed,
    notes:
      missing.length === 0
        ? []
        : [`env.pass names ${missing.join(", ")}, for which the operator's \`env\` has no value`],
  }
}
