/**
 * A driver's install methods: which is installed, and which one is to be.
 *
 * Guarantees: the author's order holds; a method that fails gives way to the next, one whose bytes are not what they
 * should be, or a cancel, to none. Where all failed, each is named with its reason. One process at a time installs for
 * a driver.
 */
import { createHash } from "node:crypto"
import { join } from "node:path"
import { installLocksFolder } from "../../data-folder/paths.ts"
import { fileLock } from "../data/file-lock.ts"
import { installLimits } from "../limits.ts"
import { cancelled, failed, notHere } from "./failures.ts"
import type { EnsureOptions, FirstOf, FrozenLayer, InstallAnswer, InstallFailure, MethodSpec } from "./types.ts"

type Find = (spec: MethodSpec) => Promise<InstallAnswer<FrozenLayer>>

/** What can be said without installing anything: what is there, or why nothing is. */
export const findFirst = async ({ specs, passed }: FirstOf, find: Find): Promise<InstallAnswer<FrozenLayer>> => {
  const failures: InstallFailure[] = []
  for (const spec of specs) {
    const found = await find(spec)
    if (found.ok) return found
    failures.push(found)
  }
  const changed = failures.find(({ code }) => code === "install_failed")
  const missing = failures.find(({ details }) => details["installed"] === false)
  const [first] = failures
  if (changed ?? missing ?? first) return (changed ?? missing ?? first) as InstallFailure
  return notHere(
    `none of its install methods can be used here: ${sentence(passed)}`,
    "install the program by hand, or add a method to the driver's `install`",
  )
}

interface Ways {
  find(spec: FirstOf): Promise<InstallAnswer<FrozenLayer>>
  ensure(spec: MethodSpec, options: EnsureOptions): Promise<InstallAnswer<FrozenLayer>>
}

interface Tried {
  readonly method: string
  readonly reason: string
  readonly details?: InstallFailure["details"]
}

const sentence = (tried: readonly Tried[]): string =>
  tried.map(({ method, reason }) => `${method}: ${reason}`).join("; ")

export const ensureFirst = async (
  wanted: FirstOf,
  options: EnsureOptions & { readonly signal: AbortSignal },
  data: string,
  { find, ensure }: Ways,
): Promise<InstallAnswer<FrozenLayer>> => {
  const { driver, specs, passed } = wanted
  const { signal, tell, repair = false, anew = false } = options
  const stands = (answer: InstallAnswer<FrozenLayer>): boolean =>
    !anew && (answer.ok || (answer.code === "install_failed" && !repair))
  const before = await find(wanted)
  if (stands(before)) return before
  const name = createHash("sha256")
    .update(JSON.stringify(["driver", driver]))
    .digest("hex")
  using lock = await fileLock(join(installLocksFolder(data), name), {
    waitMs: installLimits.lockMs.value,
    signal,
    onWait: () => tell?.({ phase: "waiting", what: driver }),
  })
  if (lock === undefined)
    return signal.aborted
      ? cancelled
      : failed(`another process has been installing ${driver} for too long`, "see what it waits for, or end it")
  const now = await find(wanted)
  if (stands(now)) return now
  const tried: Tried[] = [...passed]
  const failures: InstallFailure[] = []
  for (const spec of specs.slice(0, installLimits.methods.value)) {
    const answer = await ensure(spec, options)
    if (answer.ok) return answer
    if (answer.final === true || answer.code === "cancelled" || signal.aborted) return answer
    failures.push(answer)
    tried.push({ method: spec.source, reason: answer.message, details: answer.details })
    if (specs.length > 1) tell?.({ phase: "passing over", what: spec.source, reason: answer.message })
  }
  const [only] = failures
  if (only !== undefined && failures.length === 1 && passed.length === 0) return only
  return failed(
    `no install method of ${driver} works here: ${sentence(tried)}`,
    only?.hint ?? "install the program by hand, or add a method to the driver's `install`",
    { tried: tried.map(({ method, reason, details }) => ({ method, reason, ...details })) },
  )
}
