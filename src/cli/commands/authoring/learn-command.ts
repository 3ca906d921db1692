/**
 * What a command needs, found by running it sealed and uncommitted, more than once.
 *
 * Guarantees: it may write anything in a layer that is thrown away, reaches the hosts that were allowed for the run alone, and
 * starts the programs that were named or that it was found to miss. A program counts as needed only where a run without it
 * ends otherwise: that run is evidence too.
 */
import type { Observation } from "../../../authoring/learn/observation.ts"
import type { Host } from "../../../host/types.ts"
import type { JsonObject, JsonValue } from "../../../manifest/types.ts"
import { endsOtherwise, missedBy, watch, type Watched } from "./watched.ts"

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

export const learnCommand = async (host: Host, asked: CommandToLearn): Promise<LearnedRuns> => {
  const { command, workspace, allow, inputs, signal, runs } = asked
  const once = (input: JsonObject, exec: readonly string[]): Promise<Watched> =>
    watch(
      host,
      () =>
        host.run({ command: filledIn(command, input), workspace, allow, write: ["**"], exec, plan: true }, { signal }),
      exec,
    )
  const exec = new Set(asked.exec)
  const first: Watched[] = []
  for (const input of inputs) {
    for (let round = 0; round < ROUNDS; round++) {
      const seen = await once(input, [...exec])
      const missed = missedBy(seen).filter((name) => !exec.has(name))
      if (missed.length === 0 || exec.size >= PROGRAMS || signal.aborted) {
        first.push(seen)
        break
      }
      for (const name of missed) exec.add(name)
    }
  }
  // Each is left out once: what ends alike without it does not need it.
  const again = exec.size === 0 ? [] : await Promise.all(inputs.map((input) => once(input, [...exec])))
  const needless: string[] = []
  for (const name of [...exec]) {
    const rest = [...exec].filter((each) => each !== name)
    let differs = signal.aborted
    for (const [at, input] of inputs.entries()) {
      const [one, other] = [first[at], again[at]]
      if (differs || one === undefined || other === undefined) break
      differs = endsOtherwise(await once(input, rest), one, other)
    }
    if (!differs) needless.push(name)
  }
  for (const name of needless) exec.delete(name)
  const byInput = []
  for (const input of inputs) {
    const made: Watched[] = []
    for (let at = 0; at < runs && !signal.aborted; at++) made.push(await once(input, [...exec]))
    byInput.push({ input, runs: made })
  }
  return { observations: byInput.flatMap((each) => each.runs.map(({ observation }) => observation)), byInput, needless }
}
