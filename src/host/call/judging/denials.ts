/**
 * What was stopped, in words: a message and a way on for each denial, and for the failure that one probably caused.
 *
 * Guarantees: every denial of an envelope has both; a failure of the tool that came with a denial says the denial
 * first, so that nobody takes it for the answer of a site or a fault of the tool. Codes are left as they are. Pure.
 */
import { explainDenial } from "../../../egress-proxy/policy/explain.ts"
import type { Denial } from "../../../sandbox/backend.ts"
import type { ToolContract } from "../../../manifest/types.ts"
import type { Remedies } from "../../drivers/kind.ts"
import { kindOf } from "../../drivers/kinds.ts"
import type { RegisteredDriver } from "../../registry/types.ts"
import type { Failure } from "../../failure.ts"
import type { ReportedDenial } from "../../types.ts"

interface Declared {
  readonly driver: Pick<RegisteredDriver, "contract">
  readonly tool: ToolContract
}

/** What could have been declared, in the words of the driver's kind. */
export const remediesOf = (of: Declared | undefined): Remedies =>
  of === undefined ? {} : (kindOf(of.driver.contract)?.remedies?.(of.driver.contract, of.tool) ?? {})

interface Words {
  readonly message: string
  readonly hint: string
}
type Tell = (target: string) => Words

const nameOf = (path: string): string => path.slice(path.lastIndexOf("/") + 1)

const limit =
  (what: string, field: string): Tell =>
  (target) => ({
    message: `the tool was stopped at its limit ${what}: ${target}`,
    hint: `let it do less, or raise the limit: \`limits.${field}\` in caisson.yaml, and what the driver declares`,
  })

/** What the sandbox itself stops, by layer and reason; dials are explained where they are judged. */
const own: Readonly<Record<string, Tell>> = {
  "egress attempts_unnamed": () => ({
    message: "the tool tried to reach more targets than the record holds",
    hint: "declare the hosts that the tool needs in `network.egress`, and find out what the others are",
  }),
  "exec not_listed": (target) => ({
    message: `${nameOf(target)} is not among the programs that may be started, so it was not there to be`,
    hint: `if the tool needs it, add "${nameOf(target)}" to \`exec.spawn\` of the driver, with \`allow: true\``,
  }),
  "exec not_startable": (target) => ({
    message: `${target} was to be started from where nothing can be, so it was not`,
    hint: "what a tool can write is never started: run a script with its interpreter",
  }),
  "fs not_shown": (target) => ({
    message: `${target} was to be read, and is not shown to the tool, so nothing of it was`,
    hint: "what a tool needs of this machine comes through its input, the workspace or a secret",
  }),
  "fs hidden": (target) => ({
    message: `${target} of the workspace was to be read, and is hidden from the tool, so nothing of it was`,
    hint: `if the tool needs it, add "${target}" to \`fs.read\` of the driver`,
  }),
  "fs read_only": (target) => ({
    message: `${target} was to be changed, and lies where nothing can be, so it is as it was`,
    hint: "let the tool write to the workspace, and declare the paths",
  }),
  "fs own_home": (target) => ({
    message: `${target} was written in a home that only this call had, and is thrown away; yours is as it was`,
    hint: "what starts with your shell is not for tools to write",
  }),
  "exec children_forbidden": (target) => ({
    message: `${target} tried to start a child process, which its driver forbids`,
    hint: "if the program needs others, set `sandbox.exec.allow: true` in the driver and list them in `exec.spawn`",
  }),
  "limit wall": limit("of time", "wall_ms"),
  "limit memory": limit("of memory", "memory_mb"),
  "limit pids": limit("of processes", "pids"),
  "limit cpu": limit("of processor time", "cpu_ms"),
  "limit disk": limit("of bytes written", "disk_mb"),
  "limit output": limit("of output", "output_kb"),
  "limit tool_not_required": (target) => ({
    message: `the tool asked for a call of ${target}, which its contract does not require`,
    hint: "if it needs that tool, name it in `requires.tools` of its contract",
  }),
  "limit tool_changes_files": (target) => ({
    message: `the tool asked for a call of ${target}, which changes files`,
    hint: "calls within a call change nothing in the workspace: let the tool that asks write the files itself",
  }),
  "limit tool_refused": (target) => ({
    message: `the tool asked for a call of ${target}, which this caller may not make without more`,
    hint: "its own receipt says why (`calls` of this call's receipt names it)",
  }),
  "limit call_depth": (target) => ({
    message: `the tool asked for a call of ${target} within calls within calls, deeper than this host goes`,
    hint: "make the call from further up",
  }),
  "limit calls": (target) => ({
    message: `the tool asked for a call of ${target} after it and those within it had made as many as one call may`,
    hint: "make fewer calls within one",
  }),
}

/** Refusals that an entry of the driver would have kept away. */
const UNDECLARED = ["host_not_allowed", "port_not_allowed", "address_not_allowed", "no_binding"]

const wordsFor = ({ layer, reason, target }: Denial, remedies: Remedies = {}): Words => {
  const tell = own[`${layer} ${reason}`]
  const instead = layer === "exec" ? remedies.exec : UNDECLARED.includes(reason) ? remedies.egress : undefined
  const hint = instead === undefined ? {} : { hint: instead }
  if (tell !== undefined) return { ...tell(target), ...hint }
  if (layer === "egress") {
    const explained = explainDenial({ reason, target })
    // The proxy knows hosts that were declared to it; here it is known by whom.
    const message = explained.message.replace("is not a declared host", "is not in the driver's egress")
    return { ...explained, message, ...hint }
  }
  return {
    message: `${target} was stopped: ${reason}`,
    hint: "compare what the tool does with what its driver declares",
    ...hint,
  }
}

/** `of`: whose tool it was, where that is known. */
export const tellDenials = (denied: readonly Denial[], of?: Declared): readonly ReportedDenial[] => {
  const remedies = remediesOf(of)
  return denied.map((denial) => ({ ...denial, ...wordsFor(denial, remedies) }))
}

/** Ends that are the tool's own word; limits, violations and ours say what they are about already. */
export const isOfTheTool = ({ code }: Failure): boolean =>
  code.includes(":") || ["upstream_error", "output_parse_failed", "output_invalid"].includes(code)

/** A file that it tried and went on without says little; and what it wrote to its own home it got. */
const isSuspect = ({ layer, reason }: Denial): boolean =>
  layer !== "fs" || reason === "hidden" || reason === "read_only"

/**
 * The denial that most probably made the tool fail: the last one it met on the network, else a program that was not there,
 * else the last at all.
 */
const suspect = (all: readonly Denial[]): Denial | undefined => {
  const denied = all.filter(isSuspect)
  const last = (layer: Denial["layer"]): Denial | undefined => denied.findLast((denial) => denial.layer === layer)
  return last("egress") ?? last("exec") ?? denied.at(-1) ?? all.findLast(({ reason }) => reason !== "own_home")
}

/** A declared host that could not be reached, where no denial explains the failure. */
const unreachable = ({ details }: Failure): Words | undefined => {
  const [first] = Array.isArray(details["unreachable"]) ? (details["unreachable"] as readonly Partial<Words>[]) : []
  return first?.message === undefined ? undefined : { message: first.message, hint: first.hint ?? "" }
}

export const blameDenial = (failure: Failure, denied: readonly Denial[], of?: Declared): Failure => {
  if (!isOfTheTool(failure)) return failure
  const denial = suspect(denied)
  const cause = denial === undefined ? unreachable(failure) : wordsFor(denial, remediesOf(of))
  if (cause === undefined) return failure
  return {
    ...failure,
    message: `${cause.message}; that is probably why the tool failed: ${failure.message}`,
    hint: cause.hint,
    details: {
      ...failure.details,
      ...(denial === undefined
        ? {}
        : { probable_cause: { layer: denial.layer, reason: denial.reason, target: denial.target } }),
    },
  }
}
