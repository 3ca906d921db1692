/**
 * How a tool names the action that it carries out, and what it leaves to it (AIP-39).
 *
 * Guarantees: an id (perhaps `@major`), a registry's name, a path (as text or `{ file }`), `{ ref }` or `{ inline }`, each
 * in one canonical form; a path leads to files that were discovered, tried in the order of C-61. An action that a tool
 * brings along is its own: it is registered under no name, so that nobody gets what was granted to another's.
 */
import { dirname, join, resolve } from "node:path"
import type { Context } from "../values/context.ts"
import { isPathRef } from "../values/context.ts"
import { isObject, object, optionalObject, optionalText } from "../values/fields.ts"
import type { Inherited, JsonObject, ToolContract } from "../base-types.ts"
import { readAction } from "./action.ts"

/** Before the path of the ACTION.md, where a tool names its action by file. */
export const ACTION_FILE = "file:"
/** Before the id of an action that a tool brings along. */
export const ACTION_INLINE = "inline:"

/** Where nothing is there, the place beside the tool: the catalogue says so. */
const fileRef = (path: string, { file, links }: Context): string => {
  const beside = resolve(dirname(file), path)
  return `${ACTION_FILE}${links?.action(file, path) ?? (beside.endsWith(".md") ? beside : join(beside, "ACTION.md"))}`
}

export function readActionRef(
  front: JsonObject,
  context: Context,
): Pick<ToolContract, "implements" | "inlineAction"> | object {
  const given = isObject(front["implements"]) ? front["implements"] : {}
  const inline = optionalObject(given, "inline")
  if (inline !== undefined) {
    const action = readAction({ schema: "action/v1", ...inline }, context, "implements.inline")
    return action === undefined ? {} : { implements: `${ACTION_INLINE}${action.id}`, inlineAction: action }
  }
  const file = optionalText(given, "file")
  if (file !== undefined) return { implements: fileRef(file, context) }
  const ref = optionalText(given, "ref") ?? optionalText(front, "implements")
  if (ref === undefined) return {}
  return { implements: isPathRef(ref) ? fileRef(ref, context) : ref }
}

/** What is not there to read; an empty list is something said. */
export function unsaidIn(front: JsonObject): readonly Inherited[] {
  const requires = object(front, "requires")
  return [
    ...(["mutates", "approval", "risk_level"] as const).filter((key) => front[key] === undefined),
    ...(["network", "secrets", "tools"] as const).filter((key) => requires[key] === undefined),
  ]
}
