/**
 * One case, run: its workspace, the calls that make it ready, the call itself, and what it came to.
 *
 * Guarantees: whatever happens, there is a result, and the workspace is gone. What is approved is what the case does in
 * that workspace.
 */
import { performance } from "node:perf_hooks"
import type { Caller } from "../access/caller.ts"
import type { CallRequest, Envelope, Host } from "../types.ts"
import { beside, ExampleFault, furnish } from "./furnish.ts"
import type { Gathered } from "./gather.ts"
import { faultsOf } from "./holds.ts"
import { mostStopped } from "./limits.ts"
import { isBlocking } from "./outcome.ts"
import type { ConformResult } from "./types.ts"
import { writeSetDigest } from "./write-set.ts"

export interface Runnable extends Gathered {
  readonly tool: string
  /** `id@major` */
  readonly driver: string
  /** a run of it changes nothing but its own workspace */
  readonly repeatable: boolean
}

interface Circumstances {
  readonly caller?: Caller | undefined
  readonly signal?: AbortSignal | undefined
}

const failed = (why: string, began: number): ConformResult => ({
  outcome: "failed",
  why: [why],
  ms: Math.round(performance.now() - began),
})

/** Equal inputs and one recording: equal effects, or the program draws on the clock or on chance. */
const differs =
  "the same inputs and recording changed something else the second time: the program draws on the clock or on chance (docs/replay.md)"

const resultOf = (runnable: Runnable, envelope: Envelope, began: number): ConformResult => {
  const ms = Math.round(performance.now() - began)
  const faults = faultsOf(runnable.expected, envelope)
  if (faults.length === 0)
    return { outcome: "passed", why: [], ms, envelope, writeSet: writeSetDigest(envelope.effects) }
  const code = envelope.ok ? undefined : envelope.error.code
  if (code !== undefined && runnable.expected.error === undefined && isBlocking(code))
    return { outcome: "blocked", why: faults, ms, envelope, code }
  return { outcome: "failed", why: faults, ms, envelope }
}

const runOnce = async (
  host: Host,
  runnable: Runnable,
  around: Circumstances,
  observe = false,
): Promise<ConformResult> => {
  const began = performance.now()
  const { file, folder, files, before, tool, driver, input, context } = runnable
  const options = {
    approved: true,
    ...(around.caller === undefined ? {} : { caller: around.caller }),
    ...(around.signal === undefined ? {} : { signal: around.signal }),
  }
  try {
    const replay = runnable.replay === undefined ? undefined : beside(file, runnable.replay)
    if (runnable.replay !== undefined && replay === undefined)
      return failed(`there is no recording ${runnable.replay} beside the manifest`, began)
    using workspace = furnish({ file, files, ...(folder === undefined ? {} : { folder }) })
    for (const step of before) {
      const request = { tool: step.tool, input: step.input, workspace: workspace.folder }
      const ready = await host.call(step.driver === undefined ? request : { ...request, driver: step.driver }, options)
      if (!ready.ok && isBlocking(ready.error.code))
        return {
          outcome: "blocked",
          why: [`before it, ${step.tool}: ${ready.error.message}`],
          ms: 0,
          code: ready.error.code,
        }
      if (!ready.ok)
        return failed(`before it, ${step.tool} ended as ${ready.error.code}: ${ready.error.message}`, began)
    }
    const watched = observe ? { observe } : {}
    const request: CallRequest = { tool, input, workspace: workspace.folder, driver, ...watched }
    const envelope = await host.call(
      context === undefined ? request : { ...request, context },
      replay === undefined ? options : { ...options, replay },
    )
    return resultOf(runnable, envelope, began)
  } catch (error) {
    if (error instanceof ExampleFault) return failed(error.message, began)
    throw error
  }
}

/** What a run that was watched was kept from, in words; nothing where this host cannot watch. */
const keptFrom = ({ envelope }: ConformResult): readonly string[] =>
  (envelope?.denied ?? [])
    .filter(({ layer }) => layer === "fs" || layer === "exec")
    .slice(0, mostStopped)
    .map(({ message }) => `stopped: ${message}`)

/** A program that failed says seldom what it was kept from: it runs once more, watched, to be told. */
const explained = async (
  host: Host,
  runnable: Runnable,
  around: Circumstances,
  first: ConformResult,
): Promise<ConformResult> => {
  const { envelope } = first
  const isOfTheTool = envelope?.ok === false && envelope.error.class === "tool"
  if (first.outcome !== "failed" || !isOfTheTool || !runnable.repeatable) return first
  const watched = await runOnce(host, runnable, around, true)
  return { ...first, why: [...first.why, ...keptFrom(watched)], ms: first.ms + watched.ms }
}

export const runCase = async (host: Host, runnable: Runnable, around: Circumstances): Promise<ConformResult> => {
  const first = await explained(host, runnable, around, await runOnce(host, runnable, around))
  if (runnable.replay === undefined || first.outcome !== "passed") return first
  const second = await runOnce(host, runnable, around)
  const ms = first.ms + second.ms
  if (second.outcome !== "passed" || second.writeSet === first.writeSet) return { ...second, ms }
  return { ...second, outcome: "failed", why: [differs], ms }
}
