/**
 * Whether an sdk driver's functions are there.
 *
 * Guarantees: each module is loaded once for its manifest, edition and interpreter, in a sandbox without network, secrets or
 * workspace, and every `function_ref` is looked for; one that is not there makes the driver unavailable. That they were
 * found is remembered across processes, that they were not for a while.
 */
import { createHash } from "node:crypto"
import type { DriverContract, SdkSpec } from "../../../manifest/types.ts"
import { hostLimits } from "../../limits.ts"
import type { DriverAvailability, Surroundings } from "../kind.ts"
import type { FoundModule } from "../runner/found-module.ts"
import { findModule } from "./module.ts"

const RESOLVED = "resolved"
type Unavailable = Extract<DriverAvailability, { available: false }>

const refsOf = ({ implements: entries }: DriverContract): readonly (readonly string[])[] =>
  entries.flatMap(({ sdk }) => (sdk === undefined ? [] : [sdk.functionRef]))

const unresolved = (reason: string): Unavailable => ({
  available: false,
  code: "function_ref_unresolvable",
  reason,
  fix: "correct `package`, `entrypoint` or `function_ref` in the driver",
})

/** Undefined: all of them are there. */
const lookFor = async (
  driver: DriverContract,
  found: FoundModule,
  here: Surroundings,
): Promise<Unavailable | undefined> => {
  const refs = refsOf(driver)
  const { interpreter, bundles, module, env = {}, image } = found
  const on = image === undefined ? {} : { image }
  const answer = await here.runInModule({ interpreter, bundles, env, ...on, request: { do: "resolve", module, refs } })
  if (answer.ok) {
    const faults = Array.isArray(answer.value) ? answer.value.filter((each) => typeof each === "string") : []
    const [first] = faults
    return first === undefined ? undefined : unresolved(first)
  }
  if (answer.kind === "unsealed") {
    const { message: reason, fix = "run `caisson doctor`" } = answer
    return { available: false, code: "sandbox_unavailable", reason, fix }
  }
  const said =
    answer.kind === "thrown"
      ? `${answer.thrown.names[0] ?? "Error"}: ${answer.thrown.message.slice(0, 300)}`
      : answer.message
  return unresolved(`its module cannot be loaded: ${said}`)
}

const keyOf = (driver: DriverContract, { edition, interpreter, image }: FoundModule): string =>
  createHash("sha256")
    .update(JSON.stringify(["functions", driver.source.digest, edition, interpreter.program, image ?? ""]))
    .digest("hex")

/** Under way or not there, of this process. */
const faults = new Map<string, Promise<Unavailable | undefined>>()

const faultOf = (driver: DriverContract, found: FoundModule, here: Surroundings): Promise<Unavailable | undefined> => {
  const key = keyOf(driver, found)
  const known = faults.get(key)
  if (known !== undefined) return known
  const look = async (): Promise<Unavailable | undefined> => {
    if ((await here.remembered?.get(key)) === RESOLVED) return undefined
    const fault = await lookFor(driver, found, here)
    if (fault === undefined) await here.remembered?.set(key, RESOLVED)
    // What it imports may be mended without a change to the file itself.
    else setTimeout(() => faults.delete(key), hostLimits.probeRetryMs.value).unref()
    return fault
  }
  const looking = look()
  faults.set(key, looking)
  looking.catch(() => faults.delete(key))
  return looking
}

export const available = async (
  driver: DriverContract,
  spec: SdkSpec,
  here: Surroundings,
): Promise<DriverAvailability> => {
  const located = await findModule(driver, spec, here)
  if (!located.ok) return located.answer
  const { found } = located
  const fault = await faultOf(driver, found, here)
  if (fault !== undefined) return fault
  return { available: true, module: found, ...(found.version === undefined ? {} : { version: found.version }) }
}
