/**
 * The operator's hooks: modules of Amplifier's that are told of each call of an Amplifier tool, and may block it.
 *
 * Guarantees: each is asked in a sandbox of its own, without network, secrets or workspace, and apart from the tool; one
 * that fails, that runs out of time or whose answer is no answer blocks, as does one that asks for a person. What a hook
 * makes of the data goes to the next one.
 * Does not: put anything into a conversation: this host has none, and `inject_context` is as `continue`.
 */
import { basename } from "node:path"
import { shown } from "../../../manifest/values/diagnostics.ts"
import type { JsonObject, JsonValue } from "../../../manifest/types.ts"
import type { AmplifierHook } from "../../config/amplifier-settings.ts"
import { isObject } from "../../invoke/schema-path.ts"
import type { Surroundings } from "../kind.ts"
import type { Hooks, HookVerdict } from "../runner/found-module.ts"
import type { RunInModule } from "../runner/run-in-module.ts"
import { amplifierFiles, amplifierRequest } from "./asked.ts"
import { AMPLIFIER } from "./limits.ts"
import { moduleAt } from "./module-at.ts"

const blocked = (hook: string, message: string, details: JsonObject = {}): HookVerdict => ({
  blocked: true,
  hook,
  message,
  details: { hook, ...details },
})

const PASSES = ["continue", "inject_context", "modify"]

const verdictOf = (hook: string, event: string, answer: JsonValue, data: JsonObject): HookVerdict => {
  if (!isObject(answer) || typeof answer["action"] !== "string")
    return blocked(hook, `the hook ${hook} gave no answer that can be read, and one that fails blocks`)
  const { action, reason, data: changed, handlers } = answer
  if (handlers === 0)
    return blocked(hook, `the hook ${hook} registers nothing for ${event}, and a hook that is not there blocks`)
  const words = typeof reason === "string" && reason !== "" ? { message: reason.slice(0, AMPLIFIER.errorChars) } : {}
  if (action === "deny") return blocked(hook, `the hook ${hook} blocked it`, words)
  if (action === "ask_user")
    return blocked(hook, `the hook ${hook} wants a person to be asked, which a hook cannot have done here`, words)
  if (!PASSES.includes(action))
    return blocked(hook, `the hook ${hook} answered \`${shown(action, 40)}\`, which is no action`)
  return { blocked: false, data: isObject(changed) ? changed : data }
}

const askOne = async (
  { module: path, config, timeoutMs }: AmplifierHook,
  event: string,
  data: JsonObject,
  runInModule: RunInModule,
  here: Pick<Surroundings, "interpreters">,
  signal: AbortSignal | undefined,
): Promise<HookVerdict> => {
  const hook = basename(path)
  const at = moduleAt(path, here)
  if (!at.ok) return blocked(hook, `the hook ${hook} cannot be asked, and one that fails blocks: ${at.reason}`)
  const { interpreter, bundles, module } = at.found
  if (Buffer.byteLength(JSON.stringify(data)) > AMPLIFIER.hookDataBytes)
    return blocked(hook, `what the hook ${hook} would be told is larger than ${AMPLIFIER.hookDataBytes} bytes`)
  const answer = await runInModule(
    {
      interpreter,
      bundles,
      files: amplifierFiles(),
      timeoutMs,
      request: amplifierRequest(module, config, { ask: "hook", event, data }),
    },
    signal,
  )
  if (answer.ok) return verdictOf(hook, event, answer.value, data)
  const said = answer.kind === "thrown" ? (answer.thrown.names[0] ?? "Error") : answer.message
  const words = answer.kind === "thrown" ? { message: answer.thrown.message } : {}
  return blocked(hook, `the hook ${hook} failed (${said}), and one that fails blocks`, words)
}

/** Undefined: the operator has none. */
export const hooksOf = (
  hooks: readonly AmplifierHook[],
  here: Pick<Surroundings, "interpreters" | "runInModule">,
): Hooks | undefined =>
  hooks.length === 0
    ? undefined
    : async (event, data, signal) => {
        let now = data
        for (const hook of hooks) {
          if (!hook.events.includes(event)) continue
          const verdict = await askOne(hook, event, now, here.runInModule, here, signal)
          if (verdict.blocked) return verdict
          now = verdict.data
        }
        return { blocked: false, data: now }
      }
