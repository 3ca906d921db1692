/**
 * A registered tool, run sealed and uncommitted under its own contract: what it lacks and what it never used, as diffs.
 *
 * Guarantees: the manifests are read and left as they are. What would widen them and what would narrow them are files apart.
 */
import { basename } from "node:path"
import { createTwoFilesPatch } from "diff"
import { amend, type ListEdit } from "../../../authoring/learn/amend.ts"
import { type Change, compare, type Comparison, type Declared, type Field } from "../../../authoring/learn/compare.ts"
import type { Observation } from "../../../authoring/learn/observation.ts"
import { citing, type Needs, needsOf } from "../../../authoring/learn/propose.ts"
import type { ScaffoldFile } from "../../../authoring/scaffold/scaffold.ts"
import { processCaller } from "../../../host/access/caller.ts"
import { canObserve } from "../../../sandbox/observe/can-observe.ts"
import type { Host } from "../../../host/types.ts"
import { formatOf } from "../../../manifest/formats/formats.ts"
import { writtenFile } from "../../../manifest/formats/format.ts"
import { readBounded } from "../../../manifest/read/bounded.ts"
import type { DriverContract, JsonObject, ToolContract } from "../../../manifest/types.ts"
import { exit, exitOf } from "../../exit.ts"
import type { Terminal } from "../../terminal.ts"
import { says } from "../../texts.ts"
import { inline } from "../../visible.ts"
import { watch, type Watched } from "./watched.ts"

interface ToolToLearn {
  readonly workspace: string
  readonly driver?: string
  readonly runs: number
  readonly backend?: "namespace" | "docker"
}

const relative = (scope: string): string => {
  const glob = scope.replace(/^\/+/, "")
  return glob === "" ? "**" : glob.endsWith("/") ? `${glob}**` : glob
}

const declaredBy = (tool: ToolContract, { body, egress }: DriverContract): Declared => {
  const sandbox = body.kind === "cli" ? body.cli.sandbox : undefined
  return {
    mutates: tool.mutates.filter((each) => each.class === "workspace").map(({ scope }) => relative(scope)),
    write: sandbox?.fs.write ?? [],
    read: sandbox?.fs.read ?? [],
    egress: egress.map(({ text }) => text),
    spawn: sandbox?.exec.allow === true ? sandbox.exec.spawn : [],
  }
}

const PLACES: Readonly<Record<Field, readonly [file: "tool" | "driver", path: readonly string[]]>> = {
  mutates: ["tool", ["mutates"]],
  "fs.write": ["driver", ["sandbox", "fs", "write"]],
  "fs.read": ["driver", ["sandbox", "fs", "read"]],
  "network.egress": ["driver", ["sandbox", "network", "egress"]],
  "exec.spawn": ["driver", ["sandbox", "exec", "spawn"]],
}

const spelt = ({ field, value }: Change): readonly string[] =>
  field === "mutates" ? [`workspace:/${value}`, `workspace:${value}`] : [value, `./${value}`]

const editsFor = (file: "tool" | "driver", changes: readonly Change[], verb: "add" | "remove"): readonly ListEdit[] =>
  Object.entries(PLACES).flatMap(([field, [owner, path]]) => {
    const own = changes.filter((each) => each.field === field && owner === file)
    if (own.length === 0) return []
    const values = own.flatMap((each) => (verb === "add" ? spelt(each).slice(0, 1) : spelt(each)))
    return [{ path, add: verb === "add" ? values : [], remove: verb === "remove" ? values : [] }]
  })

const cited = (changes: readonly Change[], word: string): string =>
  changes.map(({ field, value, receipts }) => `# ${word} ${field}: ${inline(value)} (${citing(receipts)})\n`).join("")

/** One file: what it rests on, then the diffs of both manifests. */
const diffOf = (
  name: string,
  changes: readonly Change[],
  verb: "add" | "remove",
  files: Readonly<Record<"tool" | "driver", string>>,
): readonly ScaffoldFile[] => {
  if (changes.length === 0) return []
  const diffs = (["tool", "driver"] as const).map((file) => {
    const edits = editsFor(file, changes, verb)
    const byHand = (all: readonly ListEdit[], how = "by hand"): string =>
      all.map(({ path }) => `# ${how}: ${path.join(".")} of ${inline(basename(files[file]))}\n`).join("")
    if (formatOf(writtenFile(files[file])) !== undefined)
      return byHand(edits, "by hand, as an annotation in caisson.yaml")
    const bytes = readBounded(files[file])
    if (typeof bytes === "string") return byHand(edits)
    const text = Buffer.from(bytes).toString("utf8")
    const amended = amend(text, edits)
    const left = byHand(amended.left)
    return (
      left +
      (amended.text === text ? "" : createTwoFilesPatch(inline(files[file]), inline(files[file]), text, amended.text))
    )
  })
  return [{ path: name, text: cited(changes, verb === "add" ? "needed" : "never used") + diffs.join("") }]
}

/** What it was kept from is what it lacks: what it dialled and what it wanted to start, beside what it did. */
const withKept = (needs: Needs, runs: readonly Observation[]): Needs => {
  const tried = runs.map((run) => ({
    ...run,
    reached: run.unreached.map((host) => (/:\d+$/.test(host) ? host : `${host}:443`)),
    started: run.kept,
  }))
  const { hosts, spawn } = needsOf(tried)
  return { ...needs, hosts: [...needs.hosts, ...hosts], spawn: [...needs.spawn, ...spawn] }
}

const tell = ({ widening, narrowing }: Comparison, terminal: Terminal): void => {
  for (const { field, value, receipts } of widening)
    terminal.say(`wider  ${field}: ${inline(value)}  (${citing(receipts)})`)
  for (const { field, value } of narrowing) terminal.say(`never used  ${field}: ${inline(value)}`)
  if (widening.length === 0 && narrowing.length === 0) terminal.say(says.learnNothing)
}

export const learnTool = async (
  host: Host,
  id: string,
  { workspace, driver: pinned, runs, backend }: ToolToLearn,
  inputs: readonly JsonObject[],
  terminal: Terminal,
  signal: AbortSignal,
): Promise<{ readonly files: readonly ScaffoldFile[]; readonly report: JsonObject } | number> => {
  const caller = processCaller()
  const drivers = await host.drivers()
  const driverOf = (key: string | undefined): DriverContract | undefined =>
    drivers.find(({ contract }) => `${contract.id}@${contract.major}` === key)?.contract
  const pin = pinned === undefined ? {} : { driver: pinned }
  const chosen = driverOf((await host.why({ tool: id, input: inputs[0] ?? {}, workspace, ...pin })).selected)
  const bin = chosen?.body.kind === "cli" ? basename(chosen.body.cli.bin) : ""
  const observe = chosen?.body.kind === "cli" && backend !== "docker" && canObserve()
  const observed: Observation[] = []
  let last: Watched | undefined
  const all = async (): Promise<void> => {
    for (const input of inputs)
      for (let at = 0; at < runs && !signal.aborted; at++) {
        const request = { tool: id, input, workspace, plan: true, observe, ...pin }
        last = await watch(host, () => host.call(request, { caller, signal, approved: true }), [], bin)
        if (last.envelope.driver !== undefined) observed.push(last.observation)
      }
  }
  await terminal.during(all(), says.learning)
  const envelope = last?.envelope
  const tool = (await host.tools()).find(
    ({ contract }) => `${contract.id}@${contract.major}` === id || contract.id === id,
  )
  const driver = driverOf(envelope?.driver)
  if (envelope === undefined || tool === undefined || driver === undefined || observed.length === 0) {
    if (envelope?.ok === false) terminal.say(`caisson: ${envelope.error.code}: ${inline(envelope.error.message)}`)
    return envelope === undefined ? exit.usage : exitOf(envelope) || exit.usage
  }
  const needs = needsOf(observed)
  const comparison = compare(declaredBy(tool.contract, driver), withKept(needs, observed))
  tell(comparison, terminal)
  for (const { what, why, receipts } of needs.left)
    terminal.say(`not proposed  ${inline(what)}: ${why}  (${citing(receipts)})`)
  const files = { tool: tool.contract.source.file, driver: driver.source.file }
  const rows = (changes: readonly Change[]): readonly JsonObject[] =>
    changes.map(({ field, value, receipts }) => ({ field, value, receipts: [...receipts] }))
  return {
    files: [
      ...diffOf("widening.diff", comparison.widening, "add", files),
      ...diffOf("narrowing.diff", comparison.narrowing, "remove", files),
    ],
    report: {
      tool: id,
      driver: envelope.driver ?? "",
      widening: rows(comparison.widening),
      narrowing: rows(comparison.narrowing),
      not_proposed: needs.left.map(({ what, why, receipts }) => ({ what, why, receipts: [...receipts] })),
      runs: observed.map(({ receipt, ok }) => ({ receipt, ok })),
    },
  }
}
