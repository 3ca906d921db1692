/**
 * A driver's own `login` or `refresh`, as sealed as a call: see `login/run-own.ts` for what it gets.
 *
 * Guarantees: no function of a driver is called in this process; it ends within its time whatever it does, and a cancel ends
 * it. A machine that cannot seal it says so instead of running it. What a refresh leaves in the home is kept whatever it
 * answers, since tokens may have been rotated before it failed; what a login leaves, where it says that it went well.
 * Nothing that it says is told with a secret in it.
 */
import { scratchFolder } from "../../../../data-folder/paths.ts"
import type { JsonValue } from "../../../../manifest/types.ts"
import type { CollectedSandbox, SandboxProfile } from "../../../../sandbox/backend.ts"
import { jobOf, shapeOf } from "../../../../sandbox/profile.ts"
import { declaredPaths } from "../../../drivers/kind-reach.ts"
import { sealPaths } from "../../../drivers/paths.ts"
import type { FoundModule } from "../../../drivers/runner/found-module.ts"
import { Marks } from "../../../drivers/runner/marks.ts"
import { type RunnerRequest, shimArgv, shimFiles } from "../../../drivers/runner/request.ts"
import { type RunnerAnswer, talk } from "../../../drivers/runner/talk.ts"
import type { Success } from "../../../failure.ts"
import { isObject } from "../../../invoke/schema-path.ts"
import { defaultLimits } from "../../../limits.ts"
import type { OwnLogin, OwnLoginResult, RanOwnLogin, RunOwnLogin } from "../../../login/run-own.ts"
import { withoutSecrets } from "../../../secrets/redact.ts"
import type { HostCore } from "../../core.ts"
import { sealEnv } from "../../sealing/env.ts"
import { handedOver, homeFor, openHome } from "../../sealing/home.ts"
import { revealed } from "../../sealing/secrets.ts"
import { keptHome, type LoginWay, metOnTheWay, sealWay, serveWay } from "./login-way.ts"
import { converse } from "../conversing/converse.ts"

type Core = Pick<HostCore, "data" | "vault" | "config" | "backend" | "egressProxy" | "availability" | "homes">
type NotRun = Extract<RanOwnLogin, { ran: false }>

const failed = (why: NotRun["why"], message: string, fix: string): NotRun => ({ ran: false, why, message, fix })
const cancelled = failed("cancelled", "it was cancelled", "run it again when wanted")
const MEND = "mend the function in the driver's module"

/** `LoginArgs` and `RefreshArgs` (AIP-30); the signal and the values of secrets are put in inside. */
const requestFor = ({ name, driver: { contract } }: OwnLogin, { module }: FoundModule): RunnerRequest => {
  const marks = new Marks(contract)
  const context = {
    driver: { id: contract.id, version: contract.version },
    region: [...contract.region],
    secrets: marks.each(),
    signal: null,
  }
  return {
    do: "call",
    module,
    ref: [contract.code?.export ?? "default", name],
    args: [{ context, signal: null }],
    marks: marks.all(),
    signals: [
      [0, "signal"],
      [0, "context", "signal"],
    ],
  }
}

interface Sealed {
  readonly profile: SandboxProfile
  readonly way: LoginWay
}

const seal = (core: Core, login: OwnLogin, found: FoundModule): Sealed | NotRun => {
  const { contract } = login.driver
  const sealed = sealWay(core, login.driver, login.secrets ?? [], { logsIn: true })
  if (!sealed.ok) return failed("unavailable", sealed.message, sealed.fix)
  const { way } = sealed
  const { network, secrets, tokens } = way
  const { keep } = sealPaths(declaredPaths(contract), contract.auth?.state.paths ?? [])
  const { env } = sealEnv(
    { pass: [], set: found.env ?? {} },
    core.config.env,
    false,
    network === "none" ? undefined : network.proxyPort,
  )
  const { interpreter, bundles, image } = found
  return {
    way,
    profile: {
      executables: {
        program: interpreter.program,
        children: false,
        spawn: interpreter.spawn,
        bundles: { ...bundles, ...interpreter.bundles },
        ...(image === undefined ? {} : { image }),
      },
      view: { read: ["**"], deny: [] },
      write: [],
      ...homeFor(core.homes, contract, login.home, keep, secrets.files),
      env: { ...env, ...secrets.placeholders, ...tokens.env },
      tty: false,
      privatePipes: true,
      network,
      limits: { ...defaultLimits, wallMs: login.timeoutMs },
      required: ["wallMs"],
      files: {},
    },
  }
}

const REASONS = ["user_cancelled", "callback_failed", "auth_expired", "upstream_error"] as const

/** Undefined: it is no result. */
const resultOf = (value: JsonValue): OwnLoginResult | undefined => {
  if (!isObject(value)) return undefined
  const { ok, reason, message, nextRefreshAt } = value
  if (ok === true) {
    const next = typeof nextRefreshAt === "string" ? Date.parse(nextRefreshAt) : Number.NaN
    return { ok: true, ...(Number.isFinite(next) ? { nextRefreshMs: next } : {}) }
  }
  const known = REASONS.find((each) => each === reason)
  if (ok !== false || known === undefined) return undefined
  return { ok: false, reason: known, message: typeof message === "string" ? message.slice(0, 500) : "" }
}

const endFailure = ({ ending }: CollectedSandbox): NotRun | undefined => {
  if (ending.by === "infrastructure") return failed("unsealed", ending.message, "run `caisson doctor`")
  if (ending.by === "cancelled") return cancelled
  if (ending.by === "limit")
    return ending.limit === "wall"
      ? failed("timed-out", "it was not done in time", "try again")
      : failed("broken", `it hit the limit ${ending.limit}`, MEND)
  return ending.by === "exec-denied" ? failed("broken", "it started another program", MEND) : undefined
}

const saidBy = ({ name, secrets = [] }: OwnLogin, answer: RunnerAnswer): OwnLoginResult | NotRun => {
  if (!answer.ok) {
    const why = answer.kind === "thrown" ? `it threw ${answer.thrown.names[0] ?? "Error"}` : answer.message
    return failed("broken", `\`${name}\` gave no answer: ${why}`, MEND)
  }
  const values = secrets.map(({ value }) => value)
  const clean = withoutSecrets({ ok: true, value: answer.value, notes: [] }, values)
  return resultOf(clean.ok ? clean.value : null) ?? failed("broken", `\`${name}\` gave no result`, MEND)
}

const runOnce = async (core: Core, login: OwnLogin, signal: AbortSignal): Promise<RanOwnLogin> => {
  const { driver, name } = login
  const available = await core.availability(driver)
  if (!available.available) return failed("unavailable", available.reason, available.fix)
  const found = available.module
  if (found?.own?.names.includes(name) !== true)
    return failed("absent", `${driver.key} brings no \`${name}\``, "define it in the driver's module")
  const sealed = seal(core, login, found)
  if ("ran" in sealed) return sealed
  const { profile, way } = sealed
  const { secrets } = way
  await using scope = new AsyncDisposableStack()
  const opened = await openHome(core.homes, profile, secrets.files)
  if (!opened.ok) return failed("unsealed", opened.message, opened.hint ?? "run `caisson doctor`")
  const prepared = await (await core.backend()).prepare(shapeOf(profile), signal)
  if (!prepared.ok) return signal.aborted ? cancelled : failed("unsealed", prepared.message, prepared.fix)
  scope.use(prepared)
  const served = await serveWay(core, prepared, way, login.owner, scope)
  if (!served.ok) return failed("unavailable", served.message, served.fix)
  const { proxy } = served
  const { language, inside } = found.interpreter
  const argv = shimArgv(language, inside)
  const shims = shimFiles(language)
  const files = { ...shims, ...proxy?.files }
  const job = jobOf(profile, { argv, workspace: scratchFolder(core.data), files, ...handedOver(opened.value) })
  const running = await prepared.start({ ...job, env: { ...job.env, ...revealed(secrets.env) } }, signal)
  if (!running.ok) return signal.aborted ? cancelled : failed("unsealed", running.message, running.fix)
  scope.use(running)
  let answer: RunnerAnswer = { ok: false, kind: "silent", message: "it ended without an answer" }
  const answered: Success = { ok: true, value: null, notes: [] }
  const talked = await converse(
    running,
    {
      run: "conversation",
      argv,
      files: shims,
      converse: async (session) => {
        answer = await talk({ session, request: requestFor(login, found), onEvent: () => undefined })
        return answered
      },
    },
    { outputBytes: profile.limits.outputBytes, signal, tell: () => undefined },
  )
  if (!talked.ok) return failed("unsealed", talked.message, talked.fix)
  const exited = scope.use(talked.exited)
  const ended = endFailure(exited)
  const said = ended ?? saidBy(login, answer)
  const isWell = "ok" in said && said.ok
  if (isWell || name === "refresh") {
    const lost = await keptHome(exited, opened.value)
    if (lost !== undefined) return failed("lost", lost, "run it again")
  }
  if ("ran" in said) return said
  return { ran: true, result: said, ...metOnTheWay(exited, proxy) }
}

export const createOwnLogin =
  (core: Core): RunOwnLogin =>
  async (login, signal) =>
    signal.aborted ? cancelled : runOnce(core, login, signal)
