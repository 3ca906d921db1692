/**
 * What a module of Amplifier's mounts, asked of it in a sandbox without network, secrets or workspace.
 *
 * Guarantees: whatever it answers becomes a bounded list of tools, each a name, a description and perhaps a schema that
 * nobody checked yet, or the reason why there is none; a `mount` that never returns is ended.
 */
import { shown } from "../../../manifest/values/diagnostics.ts"
import type { JsonObject, JsonValue } from "../../../manifest/types.ts"
import { isObject } from "../../invoke/schema-path.ts"
import type { FoundModule } from "../runner/found-module.ts"
import type { RunInModule } from "../runner/run-in-module.ts"
import { amplifierFiles, amplifierRequest, withSecrets } from "./asked.ts"
import { AMPLIFIER } from "./limits.ts"

export interface MountedTool {
  readonly name: string
  readonly description: string
  /** absent: it says nothing of its input */
  readonly schema?: JsonObject
}
export type Discovered =
  | { readonly ok: true; readonly tools: readonly MountedTool[]; readonly notes: readonly string[] }
  | { readonly ok: false; readonly reason: string; readonly fix: string; readonly sealed: boolean }

/** Line ends stay; characters that steer a terminal do not. */
const plainText = (value: JsonValue | undefined, most: number): string =>
  typeof value === "string"
    ? value
        .slice(0, most)
        .toWellFormed()
        // oxlint-disable-next-line no-control-regex
        .replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/g, "")
        .trim()
    : ""

const toolOf = (value: JsonValue): MountedTool | undefined => {
  if (!isObject(value) || typeof value["name"] !== "string") return undefined
  const { name, schema } = value
  if (name === "" || name.length > AMPLIFIER.nameChars || plainText(name, AMPLIFIER.nameChars) !== name)
    return undefined
  return {
    name,
    description: plainText(value["description"], AMPLIFIER.descriptionChars),
    ...(isObject(schema) ? { schema } : {}),
  }
}

const answered = (value: JsonValue): Discovered => {
  const list = isObject(value) ? value["tools"] : undefined
  if (!isObject(value) || !Array.isArray(list))
    return { ok: false, sealed: true, reason: "it answered no list of tools", fix: "look at what its `mount` does" }
  const all = (list as readonly JsonValue[]).slice(0, AMPLIFIER.tools)
  const tools = all.flatMap((each) => toolOf(each) ?? [])
  const more = typeof value["more"] === "number" ? value["more"] : 0
  const notes = [
    ...(tools.length < all.length ? [`${all.length - tools.length} of its tools have no name that can be used`] : []),
    ...(more > 0 || list.length > all.length
      ? [`it mounts more than ${AMPLIFIER.tools} tools; the rest is left out`]
      : []),
  ]
  return { ok: true, tools, notes }
}

export const discoverTools = async (
  { interpreter, bundles, module, env = {}, image }: FoundModule,
  config: JsonObject,
  runInModule: RunInModule,
  signal?: AbortSignal,
): Promise<Discovered> => {
  const answer = await runInModule(
    {
      interpreter,
      bundles,
      env,
      ...(image === undefined ? {} : { image }),
      files: amplifierFiles(),
      request: amplifierRequest(
        module,
        withSecrets(config, () => undefined),
        { ask: "discover" },
      ),
    },
    signal,
  )
  if (answer.ok) return answered(answer.value)
  if (answer.kind === "unsealed")
    return { ok: false, sealed: false, reason: answer.message, fix: answer.fix ?? "run `caisson doctor`" }
  const said =
    answer.kind === "thrown"
      ? `${answer.thrown.names[0] ?? "Error"}: ${shown(answer.thrown.message, 300)}`
      : answer.message
  const isClosed = answer.kind === "thrown" && answer.thrown.names.includes("PermissionError")
  return {
    ok: false,
    sealed: true,
    reason: `it could not be mounted: ${said}`,
    fix: isClosed
      ? "sandboxes of a root's host are another user's: let everyone read the module's folder (`chmod -R a+rX FOLDER`)"
      : "it is mounted without network, secrets or workspace, sees its own folder alone, and starts nothing; what it imports must lie there, in a `.venv` beside it, or in the Python of this machine",
  }
}
