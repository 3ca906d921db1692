/**
 * The cases of a contract and of a driver, from `examples` and `metadata.conform`. Pure.
 *
 * Guarantees: an entry of `metadata.conform` with an example's name adds to that example; any other is a case of its
 * own. A driver's `examples` are goals and command lines for readers, which say no input: they are told as skipped.
 */
import type { ConformCase as Written, DriverContract, JsonObject, ToolContract } from "../../manifest/types.ts"
import type { Expected } from "./types.ts"

export interface Gathered {
  readonly name: string
  /** id of the tool; absent where it is not known what would be called */
  readonly tool?: string
  readonly file: string
  readonly input: JsonObject
  readonly context?: JsonObject
  readonly folder?: string
  readonly files: Written["files"]
  readonly before: Written["before"]
  readonly expected: Expected
  readonly replay?: string
  readonly skip?: string
}

const expectedOf = (written: Omit<Partial<Written>, "output">, output: Expected["output"]): Expected => ({
  ...(output === undefined ? {} : { output }),
  ...(written.schema === undefined ? {} : { schema: written.schema }),
  ...(written.pattern === undefined ? {} : { pattern: written.pattern }),
  ...(written.error === undefined ? {} : { error: written.error }),
  ...(written.effects === undefined ? {} : { effects: written.effects }),
})

const outputOf = (written: object | undefined): Expected["output"] =>
  written !== undefined && Object.hasOwn(written, "output")
    ? { value: (written as { output: NonNullable<Expected["output"]>["value"] }).output }
    : undefined

const fromWritten = (written: Written, tool: string, file: string): Gathered => ({
  name: written.name,
  tool,
  file,
  input: written.input ?? {},
  ...(written.context === undefined ? {} : { context: written.context }),
  ...(written.workspace === undefined ? {} : { folder: written.workspace }),
  files: written.files,
  before: written.before,
  expected: expectedOf(written, outputOf(written)),
  ...(written.replay === undefined ? {} : { replay: written.replay }),
})

export const casesOfTool = ({ id, examples, conform = [], source: { file } }: ToolContract): readonly Gathered[] => {
  const more = new Map(conform.map((each) => [each.name, each]))
  const ofExamples = examples.map((example) => {
    const added = more.get(example.name)
    const bare = { name: example.name, files: [], before: [] }
    const whole = fromWritten({ ...bare, ...added, input: added?.input ?? example.input }, id, file)
    return { ...whole, expected: expectedOf(added ?? {}, outputOf(added) ?? outputOf(example)) }
  })
  const names = new Set(examples.map(({ name }) => name))
  return [...ofExamples, ...conform.filter(({ name }) => !names.has(name)).map((each) => fromWritten(each, id, file))]
}

const untold = "it names no tool and no input, so that only a reader can follow it: say both in `metadata.conform`"

export const casesOfDriver = (driver: DriverContract): readonly Gathered[] => {
  const { examples, conform = [], source } = driver
  const { file } = source
  const named = new Set(conform.map(({ name }) => name))
  return [
    ...conform.map((each) => fromWritten(each, each.tool ?? "", file)),
    ...examples
      .filter(({ goal }) => !named.has(goal))
      .map(({ goal }) => ({ name: goal, file, input: {}, files: [], before: [], expected: {}, skip: untold })),
  ]
}
