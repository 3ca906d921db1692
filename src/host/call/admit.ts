/**
 * Step 1: is this a call at all? Caller, tool and version, input, context, workspace.
 *
 * Guarantees: what leaves here is valid against the contract, copied and frozen, so that a caller who changes its
 * object later changes nothing. The workspace is open (`workspace.ts`), and the caller closes it. Messages name fields,
 * never values.
 */
import { deepFreeze } from "../../manifest/values/freeze.ts"
import { compileSchema } from "../../manifest/schema/json-schema.ts"
import type { JsonObject, JsonSchema, JsonValue } from "../../manifest/types.ts"
import { mayCall } from "../access/decide.ts"
import { mayPin, subjectOf } from "../access/caller.ts"
import { isUserId } from "../access/os-user.ts"
import type { Failure } from "../failure.ts"
import { exampleInput, faultsText } from "../invoke/input-faults.ts"
import { checkWorkspacePaths } from "../invoke/workspace-path.ts"
import { hostLimits } from "../limits.ts"
import type { CallRequest } from "../types.ts"
import { unknownKey } from "../unknown-key.ts"
import type { HostCore } from "./core.ts"
import { isBoundKey, withBoundContext } from "./admission/bound-context.ts"
import { findTool } from "./admission/find-tool.ts"
import type { Admitted, Requested, Step } from "./steps.ts"
import { openEmpty, openWorkspace } from "./admission/workspace.ts"
import { canWriteIn } from "./admission/writable.ts"
import { withFileRoot } from "./sealing/files.ts"

/** A library's or a wire's caller may send anything; what is not text must not reach a path or a receipt. */
const TEXTS = ["workspace", "driver"] as const
/** Every key that a request may have; one that is misspelt must not be passed over, least of all `plan`. */
const KEYS: Readonly<Record<keyof CallRequest, true>> = {
  tool: true,
  input: true,
  workspace: true,
  context: true,
  driver: true,
  plan: true,
  observe: true,
}
const HOST_KEYS = ["pinnedProvider", "regionConstraint"] as const

const refuse = (code: Failure["code"], message: string, details: JsonObject = {}, hint?: string): Failure => ({
  ok: false,
  code,
  message,
  details,
  ...(hint === undefined ? {} : { hint }),
})

const isObject = (value: JsonValue | undefined): value is JsonObject =>
  typeof value === "object" && value !== null && !Array.isArray(value)

/** A plain frozen copy of at most `bytes` of JSON, or why not. */
const copyOf = (value: JsonValue | undefined, bytes: number, what: string): Step<JsonObject> => {
  let text: string
  try {
    text = JSON.stringify(value === undefined ? {} : value) ?? "null"
  } catch {
    return refuse("input_invalid", `the ${what} is not JSON`)
  }
  if (Buffer.byteLength(text) > bytes)
    return refuse(
      "input_invalid",
      `the ${what} is larger than ${bytes} bytes`,
      { limit: bytes },
      "put large data into a workspace file and pass its path",
    )
  const copy = JSON.parse(text) as JsonValue
  return isObject(copy)
    ? { ok: true, value: deepFreeze(copy) }
    : refuse("input_invalid", `the ${what} is not an object`, {}, "pass a JSON object")
}

const validate = (schema: JsonSchema, value: JsonObject, what: string, hint?: string): Failure | undefined => {
  const compiled = compileSchema(schema)
  if (!compiled.ok)
    return refuse(
      "manifest_invalid",
      `the tool's schema for its ${what} cannot be used: ${compiled.message}`,
      { path: compiled.path },
      compiled.fix,
    )
  const result = compiled.validate(value)
  if (result.ok) return undefined
  return refuse(
    "input_invalid",
    faultsText(what, result.errors),
    { field: result.errors[0]?.path ?? "", errors: result.errors.map(({ path, message }) => ({ path, message })) },
    hint,
  )
}

const readContext = (
  admitted: JsonObject,
  schema: JsonSchema | undefined,
): Step<{ context: JsonObject; pin?: string; regions?: readonly string[] }> => {
  const declared = isObject(schema?.["properties"]) ? schema["properties"] : {}
  const rest: Record<string, JsonValue> = { ...admitted }
  for (const key of HOST_KEYS) if (!Object.hasOwn(declared, key)) delete rest[key]
  if (schema !== undefined) {
    const failure = validate(schema, rest, "context")
    if (failure !== undefined) return failure
  }
  const { pinnedProvider: pin, regionConstraint } = admitted
  if (pin !== undefined && typeof pin !== "string")
    return refuse("input_invalid", "context `pinnedProvider` is not the id of a driver", { field: "pinnedProvider" })
  const regions =
    regionConstraint === undefined || Array.isArray(regionConstraint) ? regionConstraint : [regionConstraint]
  if (regions !== undefined && !(regions as readonly JsonValue[]).every((region) => typeof region === "string"))
    return refuse("input_invalid", "context `regionConstraint` is not a region or a list of regions", {
      field: "regionConstraint",
    })
  return {
    ok: true,
    value: {
      context: deepFreeze(rest),
      ...(pin === undefined ? {} : { pin }),
      ...(regions === undefined ? {} : { regions: regions as readonly string[] }),
    },
  }
}

/** `anyInput`: the question is about the tool, not about one input, so an absent input is not held against it. */
export const admit = (core: HostCore, requested: Requested, anyInput = false): Step<Admitted> => {
  const { request, caller } = requested
  const odd = unknownKey(request, Object.keys(KEYS))
  if (odd !== undefined) return refuse("input_invalid", `the request ${odd.message}`, { field: odd.key }, odd.fix)
  if (typeof request.tool !== "string")
    return refuse("input_invalid", "`tool` is not the id of a tool", { field: "tool" })
  const wrong = TEXTS.find((field) => request[field] !== undefined && typeof request[field] !== "string")
  if (wrong !== undefined) return refuse("input_invalid", `\`${wrong}\` is not text`, { field: wrong }, "pass a string")
  const long = (["tool", ...TEXTS] as const).find((field) => (request[field]?.length ?? 0) > hostLimits.nameChars.value)
  if (long !== undefined)
    return refuse(
      "input_invalid",
      `\`${long}\` is longer than ${hostLimits.nameChars.value} characters`,
      { field: long, limit: hostLimits.nameChars.value },
      "no tool, driver or folder has so long a name",
    )
  if (request.plan !== undefined && typeof request.plan !== "boolean")
    return refuse("input_invalid", "`plan` is not true or false", { field: "plan" }, "pass true or false")
  if (request.observe !== undefined && typeof request.observe !== "boolean")
    return refuse("input_invalid", "`observe` is not true or false", { field: "observe" }, "pass true or false")
  if (requested.refused !== undefined) return requested.refused
  if (requested.unreadable !== undefined)
    return refuse("input_invalid", requested.unreadable, {}, "pass a JSON object, @FILE, or - for stdin")
  if (![caller.user, caller.actor].every(isUserId))
    return refuse("input_invalid", "`user` is not a user id", { field: "user" }, "use letters, digits, and . _ @ -")
  const barred = mayCall(caller)
  if (barred !== undefined) return barred
  const found = findTool(core, caller, request.tool)
  if (!found.ok) return found
  const { tool, action } = found.value
  const copy = copyOf(request.input, hostLimits.inputBytes.value, "input")
  if (!copy.ok) return copy
  const input = withFileRoot(tool, copy.value)
  const skipped = anyInput && request.input === undefined
  const failure = skipped
    ? undefined
    : (validate(tool.inputs, input, "input", `pass, for example, ${exampleInput(tool)}`) ??
      checkWorkspacePaths(tool.inputs, input))
  if (failure !== undefined) return failure
  const copied = copyOf(request.context, hostLimits.contextBytes.value, "context")
  if (!copied.ok) return copied
  const filled = withBoundContext(core, requested, tool, copied.value)
  if (!filled.ok) return filled
  const context = readContext(filled.value, tool.contextSchema)
  if (!context.ok) return context
  const pin = request.driver ?? context.value.pin
  if (context.value.pin !== undefined && context.value.pin !== pin)
    return refuse(
      "input_invalid",
      "the call pins two different drivers",
      { field: "pinnedProvider" },
      "name one driver, by --driver or by context.pinnedProvider",
    )
  if (pin !== undefined && !mayPin(caller) && !isBoundKey(core, requested, "pinnedProvider"))
    return refuse(
      "unauthorised",
      "this caller may not say which driver serves its calls",
      { field: request.driver === undefined ? "pinnedProvider" : "driver" },
      "leave the driver out, or ask for the role `pin`",
    )
  const isUnnamed = request.workspace === undefined && requested.empty !== undefined
  if (isUnnamed && tool.mutates.some((scope) => scope.class === "workspace"))
    return refuse(
      "input_invalid",
      `${tool.id} changes files, and the call names no workspace`,
      { field: "workspace" },
      "name the folder: `workspace`, an absolute path",
    )
  const workspace = isUnnamed ? openEmpty(core, requested.empty ?? "") : openWorkspace(core, caller, request.workspace)
  if (!workspace.ok) return workspace
  const writes = request.plan !== true && tool.mutates.some((scope) => scope.class === "workspace")
  if (writes && !canWriteIn(workspace.value.folder)) {
    workspace.value.folder[Symbol.dispose]()
    return refuse(
      "unauthorised",
      `${tool.id} changes files, and this user can write nothing in the workspace ${workspace.value.folder.path}; nothing was run`,
      { workspace: workspace.value.folder.path },
      "use a workspace that you can write, or see what it would change with --plan",
    )
  }
  return {
    ok: true,
    value: {
      ...requested,
      ...(request.observe === true ? { observe: "required" as const } : {}),
      tool,
      ...(action === undefined ? {} : { action }),
      input: deepFreeze(input),
      ...(skipped ? { anyInput: true } : {}),
      ...context.value,
      ...(pin === undefined ? {} : { pin }),
      workspace: workspace.value.folder.path,
      folder: workspace.value.folder,
      kept: workspace.value.kept,
      user: subjectOf(caller),
      plan: request.plan === true,
    },
  }
}
