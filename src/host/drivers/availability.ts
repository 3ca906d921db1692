/**
 * Whether a driver can serve calls on this machine, and if not, why and what to do.
 *
 * Guarantees: what holds for every kind is asked first (it registered, it can serve at all, this host runs its kind, the
 * machine is one it runs on), then its kind. What is not known is unavailable.
 * Does not: run anything, install (that is asked for by a person), judge login state.
 */
import type { DriverContract } from "../../manifest/types.ts"
import type { Installs } from "../install/installs.ts"
import type { ReasonCode } from "../reasons.ts"
import type { AskImage, Binding, DriverAvailability, Surroundings, Talk } from "./kind.ts"
import { kindOf, unserved } from "./kinds.ts"
import { type Machine, unmetRequirement } from "./program/machine.ts"
import { systemFolders } from "./program/program.ts"
import { createVersionChecks, type VersionCheckOptions } from "./program/version-check.ts"

export interface AvailabilityOptions extends Omit<VersionCheckOptions, "folders"> {
  readonly machine: Machine
  readonly installs: Installs
  readonly mayInstall?: boolean
  readonly prefer?: Surroundings["prefer"]
  readonly runInModule: Surroundings["runInModule"]
  readonly interpreters?: Surroundings["interpreters"]
  readonly talk: Talk
  readonly imageProgram?: AskImage
  readonly builtins?: Surroundings["builtins"]
  readonly builtinHosts?: Surroundings["builtinHosts"]
  readonly amplifierHooks?: Surroundings["amplifierHooks"]
  readonly amplifierTools?: Surroundings["amplifierTools"]
  readonly folders?: readonly string[]
}

/** A driver, and why it was refused when it was registered. */
interface Candidate {
  readonly contract: DriverContract
  /** the operator vouches for its folder, or the program that embeds this host handed it over */
  readonly vouched?: boolean
  readonly given?: true
  /** its entries that hold against registered contracts */
  readonly bindings: readonly Binding[]
  readonly refusal?: { readonly code: ReasonCode; readonly reason: string; readonly fix: string }
}

const noImages: AskImage = () =>
  Promise.resolve({ ok: false, message: "this host's backend has no images", fix: "use `--backend docker`" })

interface AvailabilityChecker {
  of(driver: Candidate): Promise<DriverAvailability>
}

export const createAvailability = ({
  machine,
  installs,
  mayInstall = false,
  prefer = "system",
  runInModule,
  interpreters = {},
  talk,
  imageProgram = noImages,
  builtins = new Map(),
  builtinHosts = [],
  amplifierHooks = [],
  amplifierTools,
  folders = systemFolders,
  ...checks
}: AvailabilityOptions): AvailabilityChecker => {
  const here: Surroundings = {
    folders,
    installs,
    mayInstall,
    prefer,
    runInModule,
    interpreters,
    talk,
    imageProgram,
    builtins,
    builtinHosts,
    amplifierHooks,
    ...(amplifierTools === undefined ? {} : { amplifierTools }),
    versions: createVersionChecks({ ...checks, folders }),
    ...(checks.store === undefined ? {} : { remembered: checks.store }),
  }
  const of = async ({ contract, bindings, refusal, vouched, given }: Candidate): Promise<DriverAvailability> => {
    if (refusal !== undefined) return { available: false, ...refusal }
    const cannot = (reason: string, fix: string): DriverAvailability => ({
      available: false,
      code: "tool_unavailable",
      reason,
      fix,
    })
    if (contract.unusable !== undefined) return cannot(contract.unusable, "run `caisson validate` on the driver")
    const kind = kindOf(contract)
    if (kind === undefined) return unserved(contract)
    const unmet = unmetRequirement(contract, machine)
    if (unmet !== undefined) return cannot(unmet, "register a driver for this machine")
    const found = await kind.available(contract, here, bindings)
    const isStrangers = vouched !== true && given !== true
    const runsUnsealed =
      found.available && [...(found.builtins?.values() ?? [])].some(({ whose }) => whose !== "caisson")
    return runsUnsealed && isStrangers
      ? cannot(
          "a function of the program that embeds this host serves no driver of a folder that nobody vouches for",
          "name the folder under `manifests` in caisson.yaml, or hand the driver to createHost as `defineDriver` makes it",
        )
      : found
  }
  return Object.freeze({ of })
}
