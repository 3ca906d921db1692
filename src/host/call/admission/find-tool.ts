/**
 * The tool that a caller means, out of those that it may use.
 *
 * Guarantees: whoever may not use a tool gets the answer of one that is not registered, to the byte: it is neither found
 * nor suggested for another name. The host's operator is told what is there and why it may not be used.
 */
import { basename, dirname } from "node:path"
import { nearest, shown } from "../../../manifest/values/diagnostics.ts"
import type { ActionContract, ToolContract } from "../../../manifest/types.ts"
import { type Caller, isOperator, mayActForUser } from "../../access/caller.ts"
import { mayUse, noSuchTool, type Permission, refusalTo } from "../../access/decide.ts"
import type { Deed } from "../../access/grants.ts"
import { type AccessPolicy, accessPolicyOf } from "../../access/policy.ts"
import type { Failure } from "../../failure.ts"
import { brokenManifest } from "../../registry/broken.ts"
import type { Registry } from "../../registry/types.ts"
import type { HostCore } from "../core.ts"
import type { Step } from "../steps.ts"

export const actionOf = (registry: Registry, tool: ToolContract): { readonly action?: ActionContract } => {
  const action = tool.implements === undefined ? undefined : registry.action(tool.implements)
  return action === undefined ? {} : { action }
}

/** What is done by the very contract that something was bound to; undefined where another one is registered by now, or none. */
export const boundDeed = (
  registry: Registry,
  name: string,
  { version, digest }: { readonly version: string; readonly digest: string },
): Deed | undefined => {
  const tool = registry.toolsNamed(name).find((each) => each.version === version && each.source.digest === digest)
  return tool && { tool, ...actionOf(registry, tool) }
}

/** Whether a caller may use a tool, asked of one policy at one moment. */
export const permissions =
  (
    core: HostCore,
    caller: Caller,
    policy: AccessPolicy = accessPolicyOf(core.registry, core.config),
    now = Date.now(),
  ) =>
  (tool: ToolContract): Permission =>
    mayUse(policy, caller, { tool, ...actionOf(core.registry, tool) }, now)

/** The tools that a caller is told of: all that it may use; of the operator's own host, all. */
export const toolsFor = (core: HostCore, caller: Caller): readonly ToolContract[] => {
  if (isOperator(caller)) return core.registry.tools
  if (!mayActForUser(caller)) return []
  const permission = permissions(core, caller)
  return core.registry.tools.filter((tool) => permission(tool).ok)
}

const missingTool = (core: HostCore, caller: Caller, ref: string): Failure => {
  const id = ref.replace(/@.*$/, "")
  const { failed } = core.registry
  const broken =
    failed.find(({ kind, claims }) => kind === "tool" && claims.id === id) ??
    failed.find(({ file }) => [id, id.replaceAll(".", "-")].includes(basename(dirname(file))))
  if (broken !== undefined && isOperator(caller)) return brokenManifest(broken)
  const tools = toolsFor(core, caller)
  const near = nearest(
    id,
    tools.map((tool) => tool.id),
  )
  const majors = tools.filter((tool) => tool.id === id).map((tool) => `${tool.id}@${tool.major}`)
  const failure = noSuchTool(ref)
  const message = majors.length > 0 ? `there is no ${shown(ref)}; registered: ${majors.join(", ")}` : failure.message
  return { ...failure, message: near === undefined || near === id ? message : `${message}; did you mean ${near}?` }
}

/** The operator's own permission is decided after the input, in `authorize`; others learn of no input before they may. */
export const findTool = (
  core: HostCore,
  caller: Caller,
  ref: string,
): Step<{ readonly tool: ToolContract; readonly action?: ActionContract }> => {
  const named = core.registry.toolsNamed(ref)
  const permission = permissions(core, caller)
  const tool = isOperator(caller) ? named[0] : named.find((one) => permission(one).ok)
  if (tool !== undefined) return { ok: true, value: { tool, ...actionOf(core.registry, tool) } }
  const missing = missingTool(core, caller, ref)
  const refused = named[0] === undefined ? undefined : permission(named[0])
  return refused === undefined || refused.ok ? missing : refusalTo(caller, refused, missing)
}
