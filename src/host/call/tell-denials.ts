/**
 * What was stopped, in words: a message and a way on for each denial, and for the failure that one probably caused.
 *
 * Guarantees: every denial of an envelope has both; a failure of the tool that came with a denial says the denial
 * first, so that nobody takes it for the answer of a site or a fault of the tool. Codes are left as they are. Pure.
 */
import { reasons as egressReasons } from "../../egress-proxy/reasons.ts"
import type { Denial } from "../../sandbox/backend.ts"
import type { Failure } from "../invoke/failure.ts"
import type { ReportedDenial } from "../types.ts"

interface Words {
  readonly message: string
  readonly hint: string
}
type Tell = (target: string) => Words

/** `host:port` as an entry of `network.egress`: the usual ports go without saying. */
const entryFor = (target: string): string => target.replace(/:(?:443|80)$/, "")

const declareHost: Tell = (target) => ({
  message: `the connection to ${target} was stopped: the driver does not declare that host`,
  hint: `if the tool needs it, add \`${entryFor(target)}\` to \`network.egress\` of the driver`,
})
const limit =
  (what: string, field: string): Tell =>
  (target) => ({
    message: `the tool was stopped at its limit ${what}: ${target}`,
    hint: `let it do less, or raise the limit: \`limits.${field}\` in caisson.yaml, and what the driver declares`,
  })

/** Reasons that the proxy's own table leaves open, by layer. */
const own: Readonly<Record<string, Tell>> = {
  "egress host_not_allowed": declareHost,
  "egress port_not_allowed": (target) => ({
    message: `the connection to ${target} was stopped: the driver declares the host, but not this port`,
    hint: `if the tool needs it, add \`${target}\` to \`network.egress\` of the driver`,
  }),
  "egress address_not_allowed": (target) => ({
    message: `a dial to ${target} was stopped: it came from no declared name`,
    hint: "let the program connect by name, and declare the name in `network.egress` of the driver",
  }),
  "egress attempts_unnamed": () => ({
    message: "the tool tried to reach more targets than the record holds",
    hint: "declare the hosts that the tool needs in `network.egress`, and find out what the others are",
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
}

const wordsFor = ({ layer, reason, target }: Denial): Words => {
  const tell = own[`${layer} ${reason}`]
  if (tell !== undefined) return tell(target)
  const row =
    layer === "egress" && Object.hasOwn(egressReasons, reason) ? egressReasons[reason as "internal"] : undefined
  return row === undefined
    ? { message: `${target} was stopped: ${reason}`, hint: "compare what the tool does with what its driver declares" }
    : { message: `a request to ${target} was stopped: ${row.text}`, hint: row.hint }
}

export const tellDenials = (denied: readonly Denial[]): readonly ReportedDenial[] =>
  denied.map((denial) => ({ ...denial, ...wordsFor(denial) }))

/** Ends that are the tool's own word; limits, violations and ours say what they are about already. */
const isOfTheTool = ({ code }: Failure): boolean =>
  code.includes(":") || ["upstream_error", "output_parse_failed", "output_invalid"].includes(code)

/** The denial that most probably made the tool fail: the last one it met on the network, else the last at all. */
const suspect = (denied: readonly Denial[]): Denial | undefined =>
  denied.findLast(({ layer }) => layer === "egress") ?? denied.at(-1)

export const blameDenial = (failure: Failure, denied: readonly Denial[]): Failure => {
  const denial = suspect(denied)
  if (denial === undefined || !isOfTheTool(failure)) return failure
  const { message, hint } = wordsFor(denial)
  const { layer, reason, target } = denial
  return {
    ...failure,
    message: `${message}; that is probably why the tool failed: ${failure.message}`,
    hint,
    details: { ...failure.details, probable_cause: { layer, reason, target } },
  }
}
