/**
 * What a contract wants of its caller's side before a call: inputs that a person fills in, a word of its model, its folders.
 *
 * Guarantees: nothing of the call has begun while it asks, and nothing waits: what was answered so far travels in the sealed
 * state. An input that the caller gave is not asked for; answers are inputs like any other, checked against the contract by
 * the host. Of an answer only what was asked for is taken; one that is malformed is asked for again. What a client cannot be
 * asked for is left out where the contract does without, and else refused by the name of what is missing.
 */
import {
  type InputRequest,
  type InputRequiredResult,
  inputRequired,
  MissingRequiredClientCapabilityError,
  type ServerContext,
} from "@modelcontextprotocol/server"
import type { JsonObject, JsonSchema, JsonValue } from "../../manifest/types.ts"
import type { Entry } from "../catalogue/catalogue.ts"
import { type Ask, inputsOf, type Round } from "../catalogue/shown.ts"
import { mcpLimits } from "../limits.ts"
import type { Reach } from "./reach.ts"
import type { SealedState, State, States } from "./states.ts"

interface Asking {
  readonly states: States
  readonly whose: string
  readonly request: string
  readonly reach: Reach
}
type Before =
  | { readonly is: "given"; readonly input: JsonObject }
  | { readonly is: "asks"; readonly result: InputRequiredResult }
  | { readonly is: "refused"; readonly message: string }

const isObject = (value: unknown): value is Record<string, JsonValue> =>
  typeof value === "object" && value !== null && !Array.isArray(value)

const wanted = (ask: Ask): readonly string[] => (ask.by === "form" ? ask.inputs : [ask.input])
const canBe = (ask: Ask, reach: Reach): boolean =>
  reach[ask.by === "form" ? "form" : ask.by === "sample" ? "sample" : "roots"]

const FORM_KEYS = ["type", "title", "description", "default", "enum", "enumNames", "oneOf", "items", "format"] as const
const BOUNDS = ["minLength", "maxLength", "minimum", "maximum", "minItems", "maxItems"] as const
/** Of an input's schema what a form can show. */
const fieldOf = (schema: JsonSchema): JsonObject =>
  Object.fromEntries(
    [...FORM_KEYS, ...BOUNDS].flatMap((key) => (schema[key] === undefined ? [] : [[key, schema[key] as JsonValue]])),
  )

const required = ({ contract }: Entry): readonly string[] => {
  const names = contract.inputs["required"]
  return Array.isArray(names) ? (names as readonly string[]) : []
}

/** `${input.NAME}` in a contract's own words, as the caller gave it. */
const filled = (text: string, input: JsonObject): string =>
  text
    .replaceAll(/\$\{input\.([\w-]+)\}/g, (_whole, name: string) => {
      const value = Object.hasOwn(input, name) ? input[name] : ""
      return typeof value === "string" ? value : JSON.stringify(value)
    })
    .slice(0, mcpLimits.questionChars.value)

const requestFor = (ask: Ask, entry: Entry, input: JsonObject): InputRequest => {
  if (ask.by === "roots") return inputRequired.listRoots()
  if (ask.by === "sample")
    return inputRequired.createMessage({
      messages: [{ role: "user", content: { type: "text", text: filled(ask.prompt, input) } }],
      maxTokens: ask.maxTokens,
    })
  const inputs = inputsOf(entry.contract)
  const properties = Object.fromEntries(ask.inputs.map((name) => [name, fieldOf(inputs[name] ?? {})]))
  return inputRequired.elicit({
    // The stranger is named, so that nobody takes its words for this host's own.
    message: `\`${entry.contract.id}\` asks: ${filled(ask.message, input)}`.slice(0, mcpLimits.questionChars.value),
    requestedSchema: {
      type: "object",
      properties: properties as never,
      required: ask.inputs.filter((name) => required(entry).includes(name)),
    },
  })
}

/** The inputs of an answer; `no`: it was declined; undefined: none that can be used. */
const answerOf = (ask: Ask, written: unknown): JsonObject | "no" | undefined => {
  if (!isObject(written)) return undefined
  if (ask.by === "roots") {
    const { roots } = written
    return Array.isArray(roots) ? { [ask.input]: (roots as JsonValue[]).slice(0, mcpLimits.roots.value) } : undefined
  }
  if (ask.by === "sample") {
    const { content } = written
    const block = Array.isArray(content) ? (content as JsonValue[])[0] : content
    return isObject(block) && typeof block["text"] === "string" ? { [ask.input]: block["text"] } : undefined
  }
  const { action, content } = written
  if (action === "decline" || action === "cancel") return "no"
  if (action !== "accept" || !isObject(content)) return undefined
  const given = ask.inputs.filter((name) => Object.hasOwn(content, name))
  return Object.fromEntries(given.map((name) => [name, content[name] as JsonValue]))
}

/** What of a round is still to be asked of this client. */
const open = (round: Round, entry: Entry, input: JsonObject, reach: Reach): readonly (readonly [string, Ask])[] =>
  Object.entries(round).filter(([, ask]) => {
    if (wanted(ask).every((name) => Object.hasOwn(input, name))) return false
    if (canBe(ask, reach)) return true
    if (!wanted(ask).some((name) => required(entry).includes(name) && !Object.hasOwn(input, name))) return false
    const needs = { form: { elicitation: { form: {} } }, sample: { sampling: {} }, roots: { roots: {} } }[ask.by]
    throw new MissingRequiredClientCapabilityError(
      { requiredCapabilities: needs },
      `\`${entry.name}\` asks the client for \`${wanted(ask).join("`, `")}\`, and it does not say that it can be asked; give it with the arguments`,
    )
  })

export const askBefore = async (
  entry: Entry,
  given: JsonObject,
  state: State | undefined,
  { states, whose, request, reach }: Asking,
  ctx: ServerContext,
): Promise<Before> => {
  const { rounds } = entry.shown
  let answered: JsonObject = state?.about === "before" ? state.given : {}
  // What the caller itself gave is never replaced by an answer.
  const input = (): JsonObject => ({ ...answered, ...given })
  const answers: Readonly<Record<string, unknown>> = ctx.mcpReq.inputResponses ?? {}
  for (const round of rounds) {
    const asked = new Set<string>()
    for (const [key, ask] of open(round, entry, input(), reach)) {
      const told = Object.hasOwn(answers, key) ? answerOf(ask, answers[key]) : undefined
      if (told === "no") return { is: "refused", message: `nobody gave \`${wanted(ask).join("`, `")}\`` }
      if (told === undefined) asked.add(key)
      else answered = { ...answered, ...told }
    }
    if (asked.size === 0) continue
    const entries = Object.entries(round).filter(([key]) => asked.has(key))
    const sealed: SealedState = { about: "before", given: answered, whose, request }
    return {
      is: "asks",
      result: inputRequired({
        inputRequests: Object.fromEntries(entries.map(([key, ask]) => [key, requestFor(ask, entry, input())])),
        requestState: await states.mint(sealed, ctx),
      }),
    }
  }
  return { is: "given", input: input() }
}
