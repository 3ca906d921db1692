/**
 * A sandbox made ready for a call's program, and the job that it is given.
 *
 * Guarantees: sandbox and proxy belong to the scope that is handed in. A backend that cannot enforce the profile ends the
 * call with nothing run. Secrets that are variables or files are put in here, at the last moment.
 * Does not: serve the sandbox's channel, nor start anything.
 */
import { trustEnvironment } from "../../../egress-proxy/tls/trust.ts"
import type { Channel, Job, PreparedSandbox, SandboxShape } from "../../../sandbox/backend.ts"
import { canObserve } from "../../../sandbox/observe/can-observe.ts"
import { jobOf, shapeOf } from "../../../sandbox/profile.ts"
import type { HostedCommand, KindCommand } from "../../drivers/kind.ts"
import type { OpenedHome } from "../../homes/sealed-homes.ts"
import { inside } from "../../drivers/paths.ts"
import { operationKey } from "../../invoke/operation-key.ts"
import type { HostCore, ServedEgress } from "../core.ts"
import { handedOver, openHome } from "../sealing/home.ts"
import { notEnforced } from "../sealing/not-enforced.ts"
import { foldersPrint } from "./folders-print.ts"
import { revealed } from "../sealing/secrets.ts"
import type { Sealed, Step } from "../steps.ts"
import { ownTokens } from "./own-tokens.ts"
import { cancelled } from "./cancelled.ts"

interface Ready {
  readonly prepared: PreparedSandbox
  readonly job: Job
  /** the home that the job hands over, where that is kept encrypted */
  readonly home?: OpenedHome
  /** absent: no network */
  readonly network?: { readonly proxy: ServedEgress; readonly channel: Channel }
}

/** Not of the profile, which is the same for every call of its kind; and not of a server that outlives this call. */
const operationEnv = (
  { operation, driver }: Sealed,
  command: Exclude<KindCommand, HostedCommand>,
): Readonly<Record<string, string>> =>
  command.run === "conversation" && command.keeps !== undefined
    ? {}
    : { CAISSON_OPERATION_KEY: operationKey(operation, driver.key) }

const isObserved = ({ config }: HostCore, { observe }: Sealed): boolean =>
  observe === "required" || (observe === "where-possible" && config.backend === "namespace" && canObserve())

const trusting = trustEnvironment(inside.authority)
/**
 * Before there is a call a program has the variables that every call has, and those that say where authorities are trusted:
 * interpreters read them when they start. One that is observed is started under its listener's eyes. What it imported is
 * what lies there when its call comes: it is not the one to ask, having run that by then.
 */
const waitsOf = async (
  core: HostCore,
  sealed: Sealed,
  command: Exclude<KindCommand, HostedCommand>,
): Promise<Pick<SandboxShape, "waits">> => {
  if (command.run !== "conversation" || command.waits === undefined || isObserved(core, sealed)) return {}
  const { imports, ...program } = command.waits
  const edition = await foldersPrint(core.data, imports)
  if (edition === undefined) return {}
  const { env, limits } = sealed.profile
  const { cpuMs, diskBytes } = limits
  const trusted = Object.entries(sealed.sealedSecrets.env).filter(([name]) => Object.hasOwn(trusting, name))
  const trusts = Object.fromEntries(trusted.map(([name]) => [name, inside.authority]))
  return {
    waits: {
      ...program,
      edition,
      env: { ...env, ...trusts },
      limits: { diskBytes, ...(cpuMs === undefined ? {} : { cpuMs }) },
    },
  }
}

export const makeReady = async (
  core: HostCore,
  sealed: Sealed,
  command: Exclude<KindCommand, HostedCommand>,
  wallMs: number,
  scope: AsyncDisposableStack,
): Promise<Step<Ready>> => {
  const { egress, folder, signal, driver } = sealed
  const { executables } = sealed.profile
  if (executables === undefined) throw new TypeError(`${driver.key} runs a program and was sealed without one`)
  const profile = { ...sealed.profile, executables }
  const home = await openHome(core.homes, profile, sealed.sealedSecrets.files)
  if (!home.ok) return home
  const backend = await core.backend()
  const prepared = await backend.prepare({ ...shapeOf(profile), ...(await waitsOf(core, sealed, command)) }, signal)
  if (!prepared.ok) return signal.aborted ? cancelled : notEnforced(prepared)
  scope.use(prepared)
  let network: Ready["network"]
  if (egress !== undefined) {
    const { channel } = prepared
    if (channel === "none")
      return notEnforced({
        control: "egress-channel",
        message: "the sandbox was made without the channel that its network needs",
        fix: "run `caisson doctor`",
      })
    const tokens = await ownTokens(core, sealed)
    if (!tokens.ok) return tokens
    network = { proxy: scope.use(await core.egressProxy(egress, tokens.value, sealed.tape?.tape)), channel }
  }
  const files = { ...(command.run === "conversation" ? command.files : {}), ...network?.proxy.files }
  const handed = handedOver(home.value)
  const stdio = command.run === "program" ? command.attachment?.stdio : undefined
  const job = jobOf(profile, {
    argv: command.argv,
    workspace: folder.identity,
    wallMs,
    files,
    ...(stdio === undefined ? {} : { stdio }),
    ...(isObserved(core, sealed) ? { observe: true as const } : {}),
    ...handed,
  })
  return {
    ok: true,
    value: {
      prepared,
      ...(home.value === undefined ? {} : { home: home.value }),
      job: { ...job, env: { ...job.env, ...operationEnv(sealed, command), ...revealed(sealed.sealedSecrets.env) } },
      ...(network === undefined ? {} : { network }),
    },
  }
}
