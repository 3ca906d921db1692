/**
 * What a command needs, found by running it sealed and uncommitted, more than once.
 *
 * Guarantees: it may write anything in a layer that is thrown away, reaches the hosts that were allowed for the run alone, and
 * starts the programs that were named or that it was found to miss. A program counts as needed only where a run without it
 * ends otherwise: that run is evidence too.
 */
import { basename } from "node:path"
import { globOfPath } from "../../../authoring/learn/globs.ts"
import type { Observation } from "../../../authoring/learn/observation.ts"
import type { Needs } from "../../../authoring/learn/propose.ts"
import type { Host } from "../../../host/types.ts"
import type { JsonObject, JsonValue } from "../../../manifest/types.ts"
import { endsOtherwise, guardedBy, isWatched, missedBy, watch, type Watched } from "./watched.ts"

interface CommandToLearn {
  /** with `${input.NAME}` in it */
  readonly command: readonly string[]
  readonly workspace: string
  readonly allow: readonly string[]
  readonly exec: readonly string[]
  /** one at least */
  readonly inputs: readonly JsonObject[]
  readonly runs: number
  readonly signal: AbortSignal
}

export interface LearnedRuns {
  readonly observations: readonly Observation[]
  /** the runs of each input, as they were made in the end */
  readonly byInput: readonly { readonly input: JsonObject; readonly runs: readonly Watched[] }[]
  /** programs that were tried and made no difference */
  readonly needless: readonly string[]
}

/** How often programs are added before it is left at that, and how many. */
const ROUNDS = 6
const PROGRAMS = 32

const asText = (value: JsonValue | undefined): string =>
  typeof value === "string" ? value : value === undefined ? "" : JSON.stringify(value)

/** The command as it is run with these inputs. Only plain templates: what filters do is the driver's. */
const filledIn = (command: readonly string[], input: JsonObject): readonly string[] =>
  command.map((word) =>
    word.replace(/\$\{\s*input\.([A-Za-z_][A-Za-z0-9_]*)\s*\}/g, (_, name: string) => asText(input[name])),
  )

type Once = (input: JsonObject, exec: readonly string[]) => Promise<Watched>

/** Nobody watched what was started: each is left out once, and what ends alike without it does not need it. */
const leftOut = async (
  exec: readonly string[],
  first: readonly Watched[],
  inputs: readonly JsonObject[],
  once: Once,
  signal: AbortSignal,
): Promise<readonly string[]> => {
  const again: Watched[] = []
  for (const input of exec.length === 0 ? [] : inputs) again.push(await once(input, exec))
  const needless: string[] = []
  for (const name of exec) {
    const rest = exec.filter((each) => each !== name)
    let differs = signal.aborted
    for (const [at, input] of inputs.entries()) {
      const [one, other] = [first[at], again[at]]
      if (differs || one === undefined || other === undefined) break
      differs = endsOtherwise(await once(input, rest), one, other)
    }
    if (!differs) needless.push(name)
  }
  return needless
}

/** Does a run that sees and writes nothing but what is proposed end as the runs did that saw everything? */
export const holdsUp = async (
  host: Host,
  { command, workspace, signal }: CommandToLearn,
  needs: Needs,
  { byInput }: LearnedRuns,
): Promise<boolean> => {
  const names = (list: Needs["hosts"]): readonly string[] => list.map(({ value }) => value)
  const globs = (list: Needs["write"]): readonly string[] => list.map(({ glob }) => glob)
  const allowed = { allow: names(needs.hosts), exec: names(needs.spawn) }
  const shown = { read: globs(needs.read ?? []), write: globs(needs.write) }
  for (const { input, runs } of byInput) {
    const [one, other = one] = runs
    if (one === undefined || other === undefined) return false
    const request = { command: filledIn(command, input), workspace, plan: true, ...allowed, ...shown }
    if (endsOtherwise(await watch(host, () => host.run(request, { signal })), one, other)) return false
  }
  return true
}

export const learnCommand = async (host: Host, asked: CommandToLearn): Promise<LearnedRuns> => {
  const { command, workspace, allow, inputs, signal, runs } = asked
  const bin = basename(command[0] ?? "")
  const guarded = new Set<string>()
  const write = (): readonly string[] => ["**", ...[...guarded].flatMap((path) => globOfPath(path) ?? [])]
  const once = (input: JsonObject, exec: readonly string[]): Promise<Watched> =>
    watch(
      host,
      () =>
        host.run({ command: filledIn(command, input), workspace, allow, write: write(), exec, plan: true }, { signal }),
      exec,
      bin,
      guarded,
    )
  const exec = new Set(asked.exec)
  const first: Watched[] = []
  for (const input of inputs) {
    for (let round = 0; round < ROUNDS; round++) {
      const seen = await once(input, [...exec])
      const missed = missedBy(seen).filter((name) => !exec.has(name))
      const unwritten = guardedBy(seen).filter((path) => !guarded.has(path))
      const isSettled = missed.length === 0 && unwritten.length === 0
      if (isSettled || round === ROUNDS - 1 || exec.size >= PROGRAMS || signal.aborted) {
        first.push(seen)
        break
      }
      for (const path of unwritten.slice(0, PROGRAMS)) guarded.add(path)
      for (const name of missed) exec.add(name)
    }
  }
  const needless = first.every(isWatched)
    ? [...exec].filter((name) => !first.some(({ observation }) => observation.started.includes(name)))
    : await leftOut([...exec], first, inputs, once, signal)
  for (const name of needless) exec.delete(name)
  const byInput = []
  for (const input of inputs) {
    const made: Watched[] = []
    for (let at = 0; at < runs && !signal.aborted; at++) made.push(await once(input, [...exec]))
    byInput.push({ input, runs: made })
  }
  return { observations: byInput.flatMap((each) => each.runs.map(({ observation }) => observation)), byInput, needless }
}
