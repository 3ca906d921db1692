/**
 * Modules written for Amplifier, as drivers of kind sdk: `mount` gives tools, and one of them is called, once for each
 * call in a fresh process inside the sandbox.
 *
 * Guarantees: what it may see, write, dial and start is what any sdk driver may; its own checks count for nothing. The
 * events of a call are told by the host, and the operator's hooks are asked before the module is loaded and after it
 * answered; where one blocks, nothing is committed. What the module says by itself is told as its own word.
 */
import { dirname, join } from "node:path"
import { compileSchema } from "../../../manifest/schema/json-schema.ts"
import { shown } from "../../../manifest/values/diagnostics.ts"
import type {
  AmplifierSpec,
  DriverContract,
  JsonObject,
  JsonValue,
  SdkCall,
  SdkSpec,
  ToolContract,
} from "../../../manifest/types.ts"
import type { Failure, Success } from "../../failure.ts"
import type { ReasonCode } from "../../reasons.ts"
import { isObject } from "../../invoke/schema-path.ts"
import { wholeInput } from "../../invoke/whole-input.ts"
import type {
  Answer,
  ConversationCommand,
  DriverAvailability,
  DriverKindModule,
  KindCall,
  Remedies,
  Session,
  Surroundings,
} from "../kind.ts"
import type { HookVerdict } from "../runner/found-module.ts"
import { Marks } from "../runner/marks.ts"
import { shimArgv, shimFiles } from "../runner/request.ts"
import { talk, type Thrown } from "../runner/talk.ts"
import { outcomeOf as sdkOutcome, Parts } from "../sdk/answer.ts"
import { moduleNeeds, moduleRemedies, sdkKind } from "../sdk/kind.ts"
import { findModule } from "../sdk/module.ts"
import { outcomeOf, readResult } from "./answer.ts"
import { amplifierFiles, amplifierRequest, withSecrets } from "./asked.ts"
import { discoverTools, type Discovered } from "./discover.ts"
import { hooksOf } from "./hooks.ts"
import { editionOf, shownAlone } from "./module-at.ts"

type Spec = SdkSpec & { readonly amplifier: AmplifierSpec }

export const amplifierOf = ({ body }: Pick<DriverContract, "body">): Spec | undefined =>
  body.kind === "sdk" && body.sdk.amplifier !== undefined ? { ...body.sdk, amplifier: body.sdk.amplifier } : undefined

const specOf = (driver: DriverContract): Spec => {
  const spec = amplifierOf(driver)
  if (spec === undefined) throw new TypeError(`${driver.id} is no module of Amplifier's`)
  return spec
}
const sdkOf = ({ binding, driver }: KindCall): SdkCall => {
  const { sdk } = binding.implementation
  if (sdk === undefined) throw new TypeError(`${driver.key} names no tool for ${binding.tool.id}`)
  return sdk
}
const nameOf = (call: KindCall): string => sdkOf(call).amplifierTool ?? call.tool.id

/** Asked once for each edition of the module, within one process. */
const looked = new WeakMap<Surroundings["runInModule"], Map<string, Promise<Discovered>>>()

const discovered = (
  driver: DriverContract,
  found: Parameters<typeof discoverTools>[0],
  config: JsonObject,
  here: Surroundings,
): Promise<Discovered> => {
  const path = join(dirname(driver.source.file), specOf(driver).package)
  const edition = editionOf(path)
  const ask = (): Promise<Discovered> => discoverTools(found, config, here.runInModule)
  if (edition === undefined) return ask()
  const mine = looked.get(here.runInModule) ?? new Map<string, Promise<Discovered>>()
  looked.set(here.runInModule, mine)
  const key = JSON.stringify([path, driver.source.digest, edition, found.interpreter.program])
  const known = mine.get(key)
  if (known !== undefined) return known
  const asking = ask()
  mine.set(key, asking)
  const forget = (): boolean => mine.delete(key)
  asking.then((answer) => {
    if (!answer.ok) forget()
  }, forget)
  return asking
}

const available = async (driver: DriverContract, here: Surroundings): Promise<DriverAvailability> => {
  const spec = specOf(driver)
  const located = await findModule(driver, spec, here)
  if (!located.ok) return located.answer
  const found = shownAlone(located.found, join(dirname(driver.source.file), spec.package))
  const told = here.amplifierTools?.(driver) ?? (await discovered(driver, found, spec.amplifier.config, here))
  if (!told.ok)
    return {
      available: false,
      code: told.sealed ? "tool_unavailable" : "sandbox_unavailable",
      reason: told.reason,
      fix: told.fix,
    }
  const absent = driver.implements.find(
    ({ sdk }) => sdk?.amplifierTool !== undefined && !told.tools.some(({ name }) => name === sdk.amplifierTool),
  )
  if (absent !== undefined)
    return {
      available: false,
      code: "function_ref_unresolvable",
      reason: `its module mounts no tool \`${shown(absent.sdk?.amplifierTool ?? "", 80)}\``,
      fix: "correct `amplifier_tool` in the driver, or the module",
    }
  const hooks = hooksOf(here.amplifierHooks, here)
  return { available: true, module: hooks === undefined ? found : { ...found, hooks } }
}

/** A hook said no, or could not say yes. */
const refused = (
  call: KindCall,
  event: string,
  { message, details }: Extract<HookVerdict, { blocked: true }>,
): Failure => ({
  ok: false,
  code: "policy_violation",
  message: `${call.tool.id}: ${message}; nothing was committed`,
  hint: "read `details.message`; hooks are the operator's (`amplifier_hooks` in caisson.yaml)",
  details: { event, ...details },
  ...(event === "tool:pre" ? { undone: true as const } : {}),
})

/** What a hook made of the input is held against the contract as the caller's was. */
const inputAfter = (call: KindCall, given: JsonObject, data: JsonObject): Answer<JsonObject> => {
  const changed = [data["input"], data["tool_input"]].find((each) => isObject(each) && each !== given)
  if (!isObject(changed)) return { ok: true, value: given }
  const compiled = compileSchema(call.tool.inputs)
  const fits = compiled.ok && compiled.validate(changed).ok
  if (fits) return { ok: true, value: changed }
  return refused(call, "tool:pre", {
    blocked: true,
    hook: "",
    message: "a hook made of the input what the contract does not take",
    details: {},
  })
}

/** What the shim says of a result that is none. */
const UNFIT: Readonly<Record<string, readonly [code: ReasonCode, what: string]>> = {
  NoResult: ["output_invalid", "answered no ToolResult"],
  NoForm: ["output_parse_failed", "answered what has no form in JSON"],
  NoTool: ["function_ref_unresolvable", "is not among the tools that its module mounts"],
  NoMount: ["tool_unavailable", "is of a module without `mount`"],
}

const unfitResult = (key: string, { names: [name = ""], message }: Thrown): Failure | undefined => {
  const row = Object.hasOwn(UNFIT, name) ? UNFIT[name] : undefined
  if (row === undefined) return undefined
  const [code, what] = row
  return {
    ok: false,
    code,
    message: `the tool of ${key} ${what}`,
    hint: "read `details.message`; let `execute` return a ToolResult of plain values",
    details: { message },
  }
}

interface Conversed {
  readonly outcome: Success | Failure
  /** what hooks and observers are told of it */
  readonly told: JsonObject
}

const hear = async (call: KindCall, input: JsonObject, session: Session): Promise<Conversed> => {
  const { module: found } = call
  const { key, contract } = call.driver
  const { amplifier } = specOf(contract)
  const marks = new Marks(contract)
  if (found === undefined) throw new TypeError(`the module behind ${key} is not there`)
  const asked = { ask: "call", tool: nameOf(call), input, most: amplifier.outputChars } as const
  const config = withSecrets(amplifier.config, marks.of)
  const request = amplifierRequest(found.module, config, asked, marks.all())
  const onEvent = (value: JsonValue): void => {
    if (isObject(value) && typeof value["event"] === "string" && !value["event"].startsWith("tool:"))
      session.tell({ type: "progress", value: { event: value["event"], by: "module", data: value["data"] ?? null } })
  }
  const answer = await talk({ session, request, onEvent })
  if (!answer.ok) {
    const unfit = answer.kind === "thrown" ? unfitResult(key, answer.thrown) : undefined
    if (unfit !== undefined) return { outcome: unfit, told: { error: { type: unfit.code } } }
    const sdk = { key, tool: call.tool, auth: contract.auth, sdk: sdkOf(call) }
    const outcome = sdkOutcome(sdk, answer, new Parts(sdk, session.tell))
    return { outcome, told: { error: { type: outcome.ok ? "" : outcome.code } } }
  }
  const result = readResult(answer.value, amplifier.outputChars)
  const outcome = outcomeOf(key, result)
  if (outcome.ok && result !== undefined) return { outcome, told: { result: { ...result } } }
  return { outcome, told: { error: result?.error ?? { type: "NoResult" } } }
}

const converse = async (call: KindCall, session: Session): Promise<Success | Failure> => {
  const { debug } = specOf(call.driver.contract).amplifier
  const { hooks } = call.module ?? {}
  const name = nameOf(call)
  const tell = (event: string, data: JsonObject, full: JsonObject = {}): void => {
    session.tell({ type: "progress", value: { event, by: "host", ...data } })
    if (debug && event !== "tool:error")
      session.tell({ type: "progress", value: { event: `${event}:debug`, by: "host", ...data, ...full } })
  }
  const facts: JsonObject = { driver: call.driver.key, tool: call.tool.id, operation: call.operation }
  const ask = async (event: string, data: JsonObject): Promise<HookVerdict> =>
    (await hooks?.(event, data, session.signal)) ?? { blocked: false, data }

  const given = wholeInput(call) as JsonObject
  const about = { tool_name: name, input: given }
  tell("tool:pre", about, facts)
  const before = await ask("tool:pre", { ...about, tool_input: given })
  if (before.blocked) {
    tell("tool:error", { tool_name: name, error: { type: "HookDenied", message: before.message } })
    return refused(call, "tool:pre", before)
  }
  const input = inputAfter(call, given, before.data)
  if (!input.ok) return input
  const { outcome, told } = await hear(call, input.value, session)
  const event = outcome.ok ? "tool:post" : "tool:error"
  const data: JsonObject = { tool_name: name, ...told }
  // What a hook keeps back or changes nobody has heard before.
  const after = await ask(event, { ...data, input: input.value, tool_input: input.value })
  if (!after.blocked) {
    const { result } = after.data
    const changed = told["result"] === undefined || result === undefined ? {} : { result }
    tell(event, { ...data, ...changed }, { ...facts, input: input.value })
    return changedBy(call, outcome, told, after.data)
  }
  tell("tool:error", { tool_name: name, error: { type: "HookDenied", message: after.message } })
  const stopped = refused(call, event, after)
  // What the tool itself ended with is what the caller has to hear of.
  return outcome.ok ? stopped : { ...outcome, details: { ...outcome.details, hook: stopped.message } }
}

/** What a hook made of a result is read as the module's was. */
const changedBy = (
  call: KindCall,
  outcome: Success | Failure,
  { result: before }: JsonObject,
  { result: after }: JsonObject,
): Success | Failure => {
  if (!outcome.ok || after === undefined || after === before) return outcome
  const { outputChars } = specOf(call.driver.contract).amplifier
  return outcomeOf(call.driver.key, readResult(after, outputChars))
}

const command = (call: KindCall): Answer<ConversationCommand> => {
  if (call.module === undefined)
    return {
      ok: false,
      code: "tool_unavailable",
      message: `the module behind ${call.driver.key} is not there`,
      details: { driver: call.driver.key },
    }
  const { language, inside } = call.module.interpreter
  return {
    ok: true,
    value: {
      run: "conversation",
      argv: shimArgv(language, inside),
      files: { ...shimFiles(language), ...amplifierFiles() },
      converse: (session) => converse(call, session),
    },
  }
}

/** Of a module that the config names, which nobody wrote a manifest for. */
const isOfConfig = ({ source }: DriverContract): boolean => source.file.endsWith("#mount")

const remedies = (driver: DriverContract, tool: ToolContract): Remedies => {
  if (!isOfConfig(driver)) return moduleRemedies
  const name = driver.implements.find((entry) => entry.tool === tool.id)?.sdk?.amplifierTool ?? tool.id
  const entry = `the entry of \`${specOf(driver).package}\` under \`amplifier\` in caisson.yaml`
  return {
    write: `nobody said that it changes this: write \`tools: { ${shown(name, 60)}: { mutates: ["workspace:PATH"] } }\` in ${entry}`,
    exec: `nobody said that it starts this: name the program in \`exec: [NAME]\` of ${entry}`,
    egress: `nobody said that it reaches this: name the host in \`egress: [HOST]\` of ${entry}`,
  }
}

export const amplifierKind: DriverKindModule = {
  ...sdkKind,
  remedies,
  takesImage: false,
  available,
  needs: moduleNeeds,
  command,
  outline: (call) => [specOf(call.driver.contract).package, nameOf(call)],
  evidence: (call) => ({ package: specOf(call.driver.contract).package, amplifier_tool: nameOf(call) }),
}
