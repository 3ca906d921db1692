/**
 * One command of a driver's in the driver's own home, as sealed as a call: for logins, refreshes, proofs and set-up.
 *
 * Guarantees: it sees the home of its driver, workspace and user, an empty folder for a workspace, and the hosts that the
 * driver declares and the operator allows, for as long as it runs. A machine that cannot seal it says so instead of
 * running it. What it leaves in the home is durable before the answer, or the answer says that it was lost. What it
 * prints is bounded, and told without the secrets that it was given.
 */
import { scratchFolder } from "../../../../data-folder/paths.ts"
import { createTurnstile } from "../../../../base/turnstile.ts"
import type { CollectedSandbox, RunningSandbox, SandboxProfile } from "../../../../sandbox/backend.ts"
import { collect } from "../../../../sandbox/collect.ts"
import { jobOf, shapeOf } from "../../../../sandbox/profile.ts"
import { homeFolder } from "../../../data/homes.ts"
import { homeProgram, ownSandbox } from "../../../drivers/program/home-program.ts"
import type { DriverAvailability } from "../../../drivers/kind.ts"
import { sealPaths } from "../../../drivers/paths.ts"
import { defaultLimits, hostLimits } from "../../../limits.ts"
import type { LentTerminal } from "../../../person.ts"
import type { HomeCommand, HomeRunner, RanInHome } from "../../../login/run-in-home.ts"
import { textWithout } from "../../../secrets/redact.ts"
import type { HostCore, ServedEgress } from "../../core.ts"
import { sealEnv } from "../../sealing/env.ts"
import { handedOver, homeFor, openHome } from "../../sealing/home.ts"
import { revealed } from "../../sealing/secrets.ts"
import { keptHome, type LoginWay, metOnTheWay, sealWay, serveWay } from "./login-way.ts"

type Core = Pick<
  HostCore,
  "data" | "vault" | "catalogue" | "config" | "backend" | "egressProxy" | "availability" | "findProgram" | "homes"
>
type Found = Extract<DriverAvailability, { available: true }>

const failed = (why: Extract<RanInHome, { ran: false }>["why"], message: string, fix: string): RanInHome => ({
  ran: false,
  why,
  message,
  fix,
})

interface Sealed {
  readonly profile: SandboxProfile
  readonly argv: readonly string[]
  readonly way: LoginWay
}

const seal = (core: Core, command: HomeCommand, found: Found): Sealed | Extract<RanInHome, { ran: false }> => {
  const { contract, key } = command.driver
  const { fs, env } = ownSandbox(contract)
  const sealed = sealWay(core, command.driver, command.secrets ?? [])
  if (!sealed.ok) {
    const why = sealed.of === "secrets" ? "unreadable" : "unavailable"
    return { ran: false, why, message: sealed.message, fix: sealed.fix }
  }
  const { way } = sealed
  const { network, secrets, tokens } = way
  const given = new Set((command.secrets ?? []).map(({ name }) => name))
  const { env: own } = sealEnv(
    {
      pass: env.pass.filter((name) => !given.has(name)),
      set: { ...env.set, ...found.program?.env, ...command.env },
    },
    core.config.env,
    command.terminal !== undefined,
    network === "none" ? undefined : network.proxyPort,
  )
  const { findProgram } = core
  const program = found.program === undefined ? {} : { program: found.program }
  const made = homeProgram({ contract, ...program, findProgram, env: own }, command.cmd)
  if (!made.ok) return { ran: false, why: "unreadable", message: made.message, fix: made.fix }
  const { keep } = sealPaths(fs, contract.auth?.state.paths ?? [])
  const { workspace, user } = command.key
  const dir = homeFolder(core.data, core.catalogue, { driver: key, file: contract.source.file, workspace, user })
  return {
    argv: made.argv,
    way,
    profile: {
      executables: made.executables,
      view: { read: ["**"], deny: [] },
      write: [],
      ...homeFor(core.homes, contract, dir, keep, secrets.files),
      env: { ...own, ...secrets.placeholders, ...tokens.env },
      tty: command.terminal !== undefined,
      network,
      limits: { ...defaultLimits, wallMs: command.timeoutMs },
      required: ["wallMs"],
      files: {},
    },
  }
}

/** What is typed goes in, what is printed goes out, for as long as it runs. */
const lend = ({ stdin, stdout, terminal }: RunningSandbox, lent: LentTerminal): Disposable => {
  const type = (bytes: Uint8Array): void => void stdin.write(bytes)
  lent.input.on("data", type)
  stdout.on("data", (bytes: Uint8Array) => lent.show(bytes))
  const resized = lent.onResize((columns, rows) => terminal?.resize(columns, rows))
  const taken = lent.take?.()
  return {
    [Symbol.dispose]: () => {
      taken?.[Symbol.dispose]()
      lent.input.off("data", type)
      resized[Symbol.dispose]()
    },
  }
}

const ranOf = (exited: CollectedSandbox, proxy: ServedEgress | undefined, command: HomeCommand): RanInHome => {
  const { ending, stdout, stderr } = exited
  const values = (command.secrets ?? []).map(({ value }) => value)
  const text = (bytes: Uint8Array): string => textWithout(Buffer.from(bytes).toString("utf8"), values)
  return {
    ran: true,
    exit: ending.by === "exit" ? ending.code : null,
    timedOut: ending.by === "limit" && ending.limit === "wall",
    stdout: text(stdout.bytes),
    stderr: text(stderr.bytes),
    ...metOnTheWay(exited, proxy),
  }
}

const cancelled = failed("cancelled", "it was cancelled", "run it again when wanted")

const runOnce = async (core: Core, command: HomeCommand, signal: AbortSignal): Promise<RanInHome> => {
  const found = await core.availability(command.driver)
  if (!found.available) return failed("unavailable", found.reason, found.fix)
  if (found.install !== undefined)
    return failed("unavailable", "its packages are not installed", `run \`caisson install ${command.driver.key}\``)
  const sealed = seal(core, command, found)
  if ("ran" in sealed) return sealed
  const { profile, argv, way } = sealed
  const { secrets } = way
  await using scope = new AsyncDisposableStack()
  const opened = await openHome(core.homes, profile, secrets.files)
  if (!opened.ok) return failed("unsealed", opened.message, opened.hint ?? "run `caisson doctor`")
  const prepared = await (await core.backend()).prepare(shapeOf(profile), signal)
  if (!prepared.ok) return signal.aborted ? cancelled : failed("unsealed", prepared.message, prepared.fix)
  scope.use(prepared)
  const served = await serveWay(core, prepared, way, command.key, scope)
  if (!served.ok) return failed("unavailable", served.message, served.fix)
  const { proxy } = served
  const { terminal } = command
  const stdio =
    terminal === undefined
      ? ({ kind: "pipes" } as const)
      : ({ kind: "terminal", columns: terminal.columns, rows: terminal.rows, echo: true } as const)
  const job = jobOf(profile, {
    argv,
    workspace: scratchFolder(core.data),
    files: proxy?.files ?? {},
    stdio,
    ...handedOver(opened.value),
  })
  const running = await prepared.start({ ...job, env: { ...job.env, ...revealed(secrets.env) } }, signal)
  if (!running.ok) return signal.aborted ? cancelled : failed("unsealed", running.message, running.fix)
  scope.use(running)
  command.began?.((port) => running.reach(port))
  if (command.heard !== undefined)
    for (const stream of [running.stdout, running.stderr]) stream.on("data", command.heard)
  if (terminal !== undefined) scope.use(lend(running, terminal))
  const { outputBytes } = profile.limits
  const exited = await collect(running, { stdin: command.stdin ?? new Uint8Array(), outputBytes })
  if (!exited.ok) return failed("unsealed", exited.message, exited.fix)
  scope.use(exited)
  const ran = ranOf(exited, proxy, command)
  if (exited.ending.by === "infrastructure") return failed("unsealed", exited.ending.message, "run `caisson doctor`")
  if (command.keepIfWell === true && ran.ran && ran.exit !== 0) return signal.aborted ? cancelled : ran
  const lost = await keptHome(exited, opened.value)
  if (lost !== undefined) return failed("lost", lost, "run it again")
  return exited.ending.by === "cancelled" ? cancelled : ran
}

export const createHomeRunner = (core: Core): HomeRunner => {
  const turn = createTurnstile(hostLimits.concurrentProbes.value)
  // A login waits for a person: it must not keep a refresh from its turn.
  return (command, signal) =>
    command.terminal === undefined && command.keepIfWell !== true
      ? turn.pass(() => runOnce(core, command, signal), signal)
      : runOnce(core, command, signal)
}
