/**
 * Sealed runs that are never committed, seen as plain observations.
 *
 * Guarantees: every run is a plan; what it reached and was denied is read from its receipt and envelope, not from what it
 * printed. What a program prints only ever names programs to try: whether one is needed is found by leaving it out.
 */
import type { Observation } from "../../../authoring/learn/observation.ts"
import { locateSystemProgram } from "../../../host/drivers/program/program.ts"
import type { Envelope, Host } from "../../../host/types.ts"
import type { JsonObject, JsonValue } from "../../../manifest/types.ts"
import { defined, isObject } from "../../../manifest/values/fields.ts"

export interface Watched {
  readonly envelope: Envelope
  readonly observation: Observation
}

const rowsOf = (value: JsonValue | undefined): readonly JsonObject[] =>
  Array.isArray(value) ? (value as readonly JsonObject[]) : []

interface Evidence {
  /** `host:port` of those that answered */
  readonly reached: readonly string[]
  readonly wallMs: number
  readonly printed?: number
  readonly sent?: number
  readonly got?: number
}

/** The sum of what rows say by this name; undefined where one does not say it. */
const sumOf = (rows: readonly JsonObject[], key: string): number | undefined =>
  rows.reduce<number | undefined>((sum, { [key]: value }) => {
    return sum === undefined || typeof value !== "number" ? undefined : sum + value
  }, 0)

const evidenceOf = async (host: Host, call: string): Promise<Evidence> => {
  const report = await host.receipts({ call })
  const facts = report.ok ? report.receipts.map(({ metadata }) => metadata ?? {}) : []
  const durations = facts.map((each) => each["duration_ms"]).filter((each) => typeof each === "number")
  const rows = facts.flatMap((each) => rowsOf(each["reached"]))
  const usage = facts.flatMap(({ usage: used }) => (isObject(used) ? [used] : []))
  const [out, err] = [sumOf(usage, "stdout_bytes"), sumOf(usage, "stderr_bytes")]
  const counted = {
    printed: usage.length === 0 || out === undefined || err === undefined ? undefined : out + err,
    sent: sumOf(rows, "bytes_out"),
    got: sumOf(rows, "bytes_in"),
  }
  return {
    ...defined(counted),
    reached: rows.flatMap(({ target }) => (typeof target === "string" ? [target] : [])),
    wallMs: Math.max(0, ...durations),
  }
}

const nameOf = (target: string): string => target.slice(target.lastIndexOf("/") + 1)

type Seen = Pick<Observation, "reads" | "readBelow" | "started" | "kept">

/** By what the kernel was asked for; where nobody watched that, by what was named and what was denied. */
const seenOf = ({ access, denied, effects }: Envelope, named: readonly string[], bin: string): Seen => {
  const kept = denied.flatMap(({ layer, target }) => (layer === "exec" ? [nameOf(target)] : []))
  if (access === undefined || access.means === "none" || access.lost > 0) return { started: named, kept }
  const reads = access.reads.filter(
    ({ where, verdict, path }) => where === "workspace" && verdict === "allowed" && path !== ".",
  )
  // What it changed was there to be changed.
  const changed = effects.filter(({ kind }) => kind !== "create" && kind !== "mkdir")
  const begun = new Map<string, number>()
  for (const { name, path, verdict, count } of access.programs)
    if (verdict === "allowed" && isSystemProgram(name, path)) begun.set(name, (begun.get(name) ?? 0) + count)
  // The command itself is no program that it starts, unless it starts itself.
  begun.set(bin, (begun.get(bin) ?? 0) - 1)
  return {
    reads: [
      ...reads.flatMap(({ path, folder }) => (folder === true ? [] : [path])),
      ...changed.flatMap(({ path, from }) => (from === undefined ? [path] : [path, from])),
    ],
    readBelow: reads.flatMap(({ path, folder }) => (folder === true ? [path] : [])),
    started: [...begun].filter(([, count]) => count > 0).map(([name]) => name),
    kept,
  }
}

const FOLDERS = new Set(["/usr/local/bin", "/usr/bin", "/bin", "/usr/sbin", "/usr/local/sbin", "/sbin"])
/** What `exec.spawn` is about: helpers of a program (`cc1`) come with it. */
const isSystemProgram = (name: string, path: string): boolean => FOLDERS.has(path.slice(0, -name.length - 1))

/** `named`: the programs that it was allowed; `bin`: its own; `guarded`: paths that no wildcard covered. */
export const watch = async (
  host: Host,
  run: () => Promise<Envelope>,
  named: readonly string[] = [],
  bin = "",
  guarded: ReadonlySet<string> = new Set(),
): Promise<Watched> => {
  const envelope = await run()
  const { effects, denied, receipt, call, ok } = envelope
  const targets = (layer: string): readonly string[] =>
    denied.flatMap((each) => (each.layer === layer ? [each.target] : []))
  return {
    envelope,
    observation: {
      receipt,
      ok,
      ...(envelope.ok ? { value: envelope.value } : {}),
      writes: effects.map(({ path, from, kind }) => ({
        path,
        made: kind === "mkdir",
        ...(guarded.has(path) ? { guarded: true } : {}),
        ...(kind === "rename" && from !== undefined ? { from } : {}),
      })),
      ...seenOf(envelope, named, bin),
      barred: targets("fs"),
      unreached: targets("egress"),
      ...(await evidenceOf(host, call)),
    },
  }
}

/** Whether what it started was watched, so that nothing has to be left out to know. */
export const isWatched = ({ observation }: Watched): boolean => observation.reads !== undefined

/** How shells and programs say that one was not there. */
const NOT_THERE = [
  /([\w.+-]{1,64}): (?:command )?not found/g,
  /(?:cannot (?:run|execute|exec|spawn|find)|failed to (?:run|execute|exec|spawn)|spawn|unable to execute)[: ]+['"`‘]?(?:[\w./+-]*\/)?([\w.+-]{1,64})/g,
  /No such file or directory: '(?:[\w./+-]*\/)?([\w.+-]{1,64})'/g,
]

const printedBy = (envelope: Envelope): string => {
  if (envelope.ok) return envelope.stderr ?? ""
  const said = envelope.error.details["stderr"]
  return typeof said === "string" ? said : ""
}

/** Programs of this machine that a run may have missed: to try, never to believe. */
export const missedBy = ({ envelope, observation }: Watched): readonly string[] => {
  const text = printedBy(envelope)
  const names = [
    ...observation.kept,
    ...NOT_THERE.flatMap((form) => [...text.matchAll(form)].map((match) => match[1] ?? "")),
  ]
  return [...new Set(names)].filter((name) => name !== "" && locateSystemProgram(name).ok)
}

/** Paths that it wrote and that not even a wildcard over everything covers. */
export const guardedBy = ({ envelope }: Watched): readonly string[] =>
  envelope.effects.flatMap(({ path, declared }) => (declared ? [] : [path]))

/** Of the workspace: files that it opened. */
export const openedBy = ({ envelope: { access } }: Watched): readonly string[] =>
  (access?.reads ?? []).flatMap(({ path, where, verdict, folder }) =>
    where === "workspace" && verdict === "allowed" && folder !== true && !path.endsWith("/") ? [path] : [],
  )

type Facts = ReadonlyMap<string, string>

/** How a run ended, fact by fact. */
const factsOf = ({ envelope, observation }: Watched): Facts => {
  const facts = new Map<string, string>([
    ["ok", String(envelope.ok)],
    [
      "value",
      JSON.stringify(envelope.ok ? envelope.value : [envelope.error.code, envelope.error.details["exit_code"]]),
    ],
    ["stderr", printedBy(envelope)],
    ["reached", JSON.stringify([observation.reached, observation.unreached])],
  ])
  for (const { path, kind, after, size, target } of envelope.effects) {
    facts.set(`${path} is`, `${kind} ${target ?? ""} ${size ?? 0}`)
    facts.set(`${path} holds`, after ?? "")
  }
  return facts
}

/** Does a run end otherwise than two that were alike but for chance? What those two disagree in says nothing. */
export const endsOtherwise = (run: Watched, one: Watched, other: Watched): boolean => {
  const [a, b, now] = [factsOf(one), factsOf(other), factsOf(run)]
  const steady = [...a].filter(([key, value]) => b.get(key) === value)
  const isNew = [...now.keys()].some((key) => !a.has(key) && !b.has(key))
  return isNew || steady.some(([key, value]) => now.get(key) !== value)
}
