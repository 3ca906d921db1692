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
import { intersectEgress } from "../../../../manifest/values/egress-entry.ts"
import type { CollectedSandbox, RunningSandbox, SandboxProfile } from "../../../../sandbox/backend.ts"
import { collect } from "../../../../sandbox/collect.ts"
import { jobOf, shapeOf } from "../../../../sandbox/profile.ts"
import { homeFolder } from "../../../data/homes.ts"
import { homeProgram, ownSandbox } from "../../../drivers/program/home-program.ts"
import type { DriverAvailability } from "../../../drivers/kind.ts"
import { sealPaths } from "../../../drivers/paths.ts"
import { defaultLimits, egressBudgets, hostLimits } from "../../../limits.ts"
import type { LentTerminal } from "../../../person.ts"
import type { HomeCommand, HomeRunner, RanInHome } from "../../../login/run-in-home.ts"
import { textWithout } from "../../../secrets/redact.ts"
import type { HostCore, ServedEgress } from "../../core.ts"
import { sealEnv } from "../../sealing/env.ts"
import { channelFor } from "../../sealing/network.ts"
import { openTokenKeep } from "../../../secrets/captured-tokens.ts"
import { type SealedTokens, sealTokens } from "../../sealing/tokens.ts"
import { handedOver, homeFor, openHome } from "../../sealing/home.ts"
import { revealed, sealSecrets, type SealedSecrets } from "../../sealing/secrets.ts"
import { keepHome } from "../keep-home.ts"

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
  readonly secrets: SealedSecrets
  readonly tokens: SealedTokens
  readonly egress: HomeCommand["driver"]["contract"]["egress"]
}

const seal = (core: Core, command: HomeCommand, found: Found): Sealed | Extract<RanInHome, { ran: false }> => {
  const { contract, key } = command.driver
  const { fs, env } = ownSandbox(contract)
  const { allow } = core.config.egress
  const egress = allow === undefined ? contract.egress : intersectEgress(contract.egress, allow)
  const network = egress.length === 0 ? "none" : channelFor(egress)
  const secrets = sealSecrets(command.secrets ?? [], egress)
  if (!secrets.ok)
    return { ran: false, why: "unreadable", message: secrets.message, fix: secrets.hint ?? "correct its SECRETS.md" }
  const tokens = sealTokens(core.config, command.driver, egress)
  if (!tokens.ok) return { ran: false, why: "unavailable", message: tokens.message, fix: tokens.hint ?? "correct it" }
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
    egress,
    secrets: secrets.value,
    tokens: tokens.value,
    profile: {
      executables: made.executables,
      view: { read: ["**"], deny: [] },
      write: [],
      ...homeFor(core.homes, contract, dir, keep, secrets.value.files),
      env: { ...own, ...secrets.value.placeholders, ...tokens.value.env },
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

const targets = (list: readonly { readonly target: string }[]): readonly string[] =>
  [...new Set(list.map(({ target }) => target))].slice(0, hostLimits.unreachable.value)

const ranOf = (exited: CollectedSandbox, proxy: ServedEgress | undefined, command: HomeCommand): RanInHome => {
  const { ending, stdout, stderr, denied } = exited
  const values = (command.secrets ?? []).map(({ value }) => value)
  const text = (bytes: Uint8Array): string => textWithout(Buffer.from(bytes).toString("utf8"), values)
  return {
    ran: true,
    exit: ending.by === "exit" ? ending.code : null,
    timedOut: ending.by === "limit" && ending.limit === "wall",
    stdout: text(stdout.bytes),
    stderr: text(stderr.bytes),
    unreachable: targets(proxy?.failures() ?? []),
    denied: targets([...(proxy?.denials() ?? []), ...denied.filter(({ layer }) => layer === "egress")]),
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
  const { profile, argv, secrets, tokens, egress } = sealed
  await using scope = new AsyncDisposableStack()
  const opened = await openHome(core.homes, profile, secrets.files)
  if (!opened.ok) return failed("unsealed", opened.message, opened.hint ?? "run `caisson doctor`")
  const prepared = await (await core.backend()).prepare(shapeOf(profile), signal)
  if (!prepared.ok) return signal.aborted ? cancelled : failed("unsealed", prepared.message, prepared.fix)
  scope.use(prepared)
  let proxy: ServedEgress | undefined
  if (prepared.channel !== "none") {
    const { services, private: granted, budgets } = core.config.egress
    const keep = tokens.capture === undefined ? undefined : await openTokenKeep(core, command.key)
    if (keep?.ok === false)
      return failed("unavailable", keep.message, keep.hint ?? "see why the vault cannot be opened")
    proxy = scope.use(
      await core.egressProxy(
        {
          entries: egress,
          services,
          private: granted,
          budgets: { ...egressBudgets, ...budgets },
          // A login changes something elsewhere: that is what it is for.
          readOnlyHttp: "off",
          substitutions: secrets.substitutions,
          ...(tokens.capture === undefined ? {} : { capture: tokens.capture }),
        },
        keep?.value,
      ),
    )
    proxy.serve(prepared.channel)
  }
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
  const [kept] = await keepHome(exited, opened.value)
  if (kept !== undefined && !kept.result.ok)
    return failed(
      "lost",
      kept.result.reason === "conflict" ? "its home was changed by another call meanwhile" : kept.result.message,
      "run it again",
    )
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
