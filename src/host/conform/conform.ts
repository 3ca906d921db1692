/**
 * `conform`: what contracts and drivers say by example, as cases that can be run.
 *
 * Guarantees: each case is a call of its own through the host, sealed, pinned to its driver, in a workspace that is made
 * for it and gone afterwards; what it changes is kept there alone. A tool whose contract says that it changes things
 * elsewhere is not run unless that is asked for. Nothing is run before a case is.
 */
import { nearest } from "../../manifest/values/diagnostics.ts"
import type { Host, ToolListing } from "../types.ts"
import type { ReasonCode } from "../reasons.ts"
import { type Gathered, casesOfDriver, casesOfTool } from "./gather.ts"
import { mostCases } from "./limits.ts"
import { lineOf } from "./line-of.ts"
import { type Runnable, runCase } from "./run-case.ts"
import type { ConformCase, ConformOptions, ConformPlan, ConformResult } from "./types.ts"

interface Served {
  readonly driver: string
  readonly blocked?: { readonly code: ReasonCode; readonly why: string }
}

const listed = (given: string | readonly string[] | undefined): readonly string[] =>
  given === undefined ? [] : typeof given === "string" ? [given] : given

const isNamed = (names: readonly string[], id: string, major: number): boolean =>
  names.includes(id) || names.includes(`${id}@${major}`)

const blockedResult = ({ code, why }: NonNullable<Served["blocked"]>): ConformResult => ({
  outcome: "blocked",
  why: [why],
  ms: 0,
  code,
})

/** What stands for `image.create` among `image.create@1`, `image.create@2`: the highest, as in a call. */
const toolsById = (tools: readonly ToolListing[]): ReadonlyMap<string, ToolListing> =>
  new Map(
    [...tools].sort((a, b) => a.contract.major - b.contract.major).map((listing) => [listing.contract.id, listing]),
  )

const mutatesElsewhere = ({ contract }: ToolListing): readonly string[] =>
  contract.mutates.filter(({ class: cls }) => cls !== "workspace").map(({ text }) => text)

/** All majors of a name that says none: whichever is called. */
const toolNamed = (tools: readonly ToolListing[], name: string): readonly ToolListing[] =>
  tools.filter(({ contract }) => isNamed([name], contract.id, contract.major))

const caseOf = (
  host: Host,
  served: Served,
  gathered: Gathered,
  { byId: tools, all }: { readonly byId: ReadonlyMap<string, ToolListing>; readonly all: readonly ToolListing[] },
  options: ConformOptions,
): ConformCase => {
  const { driver, blocked } = served
  const listing = gathered.tool === undefined ? undefined : tools.get(gathered.tool)
  const tool = listing === undefined ? (gathered.tool ?? "") : `${listing.contract.id}@${listing.contract.major}`
  const elsewhere = listing === undefined ? [] : mutatesElsewhere(listing)
  // What makes it ready is a call of any tool there is, and no recording answers it.
  const readiedElsewhere = gathered.before.find(({ tool: name }) =>
    toolNamed(all, name).some((step) => mutatesElsewhere(step).length > 0),
  )
  const { name, file, input, expected } = gathered
  const line = lineOf(file, name)
  const settled = (outcome: "failed" | "skipped", why: string): ConformResult => ({ outcome, why: [why], ms: 0 })
  const run: ConformCase["run"] = async ({ signal } = {}) => {
    if (gathered.skip !== undefined) return settled("skipped", gathered.skip)
    if (listing === undefined) return settled("failed", `there is no tool ${gathered.tool}`)
    if (!listing.drivers.includes(driver)) return settled("failed", `${driver} does not implement ${tool}`)
    if (elsewhere.length > 0 && options.outside !== true && gathered.replay === undefined)
      return settled(
        "skipped",
        `its contract changes ${elsewhere.join(", ")}: it runs with \`--outside\`, or from a recording`,
      )
    if (readiedElsewhere !== undefined && options.outside !== true)
      return settled(
        "skipped",
        `before it, ${readiedElsewhere.tool} changes things elsewhere: it runs with \`--outside\``,
      )
    if (blocked !== undefined) return blockedResult(blocked)
    // Once more to see why it failed, where that can harm nothing elsewhere.
    const repeatable = elsewhere.length === 0 && readiedElsewhere === undefined
    const runnable: Runnable = { ...gathered, tool, driver, repeatable }
    return runCase(host, runnable, { caller: options.caller, signal })
  }
  const title = [driver, ...(tool === "" ? [] : [tool]), name].join(" · ")
  return { title, name, tool, driver, file, ...(line === undefined ? {} : { line }), input, expected, run }
}

/** What would be run, without running it. */
export const planConform = async (host: Host, options: ConformOptions = {}): Promise<ConformPlan> => {
  const asking = options.caller === undefined ? {} : { caller: options.caller }
  const [drivers, tools] = [await host.drivers(asking), await host.tools(asking)]
  const [wantedDrivers, wantedTools] = [listed(options.driver), listed(options.tool)]
  const isEvery = wantedDrivers.length + wantedTools.length === 0
  const chosenTools = tools.filter(({ contract }) => isNamed(wantedTools, contract.id, contract.major))
  const chosen = drivers.filter(
    ({ contract }) =>
      isEvery ||
      isNamed(wantedDrivers, contract.id, contract.major) ||
      chosenTools.some((each) => each.drivers.includes(`${contract.id}@${contract.major}`)),
  )
  const registered = { byId: toolsById(tools), all: tools }
  const cases: ConformCase[] = []
  const without: ConformPlan["without"][number][] = []
  for (const { contract, availability } of chosen) {
    const driver = `${contract.id}@${contract.major}`
    const served = tools.filter((each) => each.drivers.includes(driver))
    const isWhole = isEvery || isNamed(wantedDrivers, contract.id, contract.major)
    const asked = isWhole ? served : served.filter((each) => chosenTools.includes(each))
    const own = isWhole ? casesOfDriver(contract) : []
    const reason = availability.available ? undefined : availability
    const base: Served = {
      driver,
      ...(reason === undefined ? {} : { blocked: { code: reason.code, why: `${reason.reason}; ${reason.fix}` } }),
    }
    const gathered = [...asked.flatMap((each) => casesOfTool(each.contract)), ...own]
    if (gathered.every(({ skip }) => skip !== undefined))
      without.push({ driver, file: contract.source.file, tools: asked.map((each) => each.contract.source.file) })
    cases.push(...gathered.map((each) => caseOf(host, base, each, registered, options)))
  }
  if (cases.length > mostCases) throw new RangeError(`${cases.length} cases; at most ${mostCases} are run at once`)
  return { cases, without, unknown: unknownIn({ drivers, tools }, wantedDrivers, wantedTools) }
}

type Registered = { readonly contract: { readonly id: string; readonly major: number } }

const unknownIn = (
  registered: { readonly drivers: readonly Registered[]; readonly tools: readonly Registered[] },
  wantedDrivers: readonly string[],
  wantedTools: readonly string[],
): ConformPlan["unknown"] => {
  const missing = (what: "driver" | "tool", names: readonly string[], among: readonly Registered[]) =>
    names
      .filter((name) => !among.some(({ contract }) => isNamed([name], contract.id, contract.major)))
      .map((name) => {
        const near = nearest(
          name,
          among.map(({ contract }) => contract.id),
        )
        return { what, name, ...(near === undefined ? {} : { nearest: near }) }
      })
  return [...missing("driver", wantedDrivers, registered.drivers), ...missing("tool", wantedTools, registered.tools)]
}

/** The cases alone, for test runners; a name that is not registered is thrown. */
export const conform = async (host: Host, options: ConformOptions = {}): Promise<readonly ConformCase[]> => {
  const { cases, unknown } = await planConform(host, options)
  const [first] = unknown
  if (first !== undefined) throw new TypeError(`there is no ${first.what} ${first.name}`)
  return cases
}
