/**
 * A contract's files (AIP-16) as they are for one call: tokens filled in, and nothing left to decide. Pure.
 *
 * Guarantees: what the driver denies itself is neither handed over nor written for it; no two outputs meet at one place,
 * whatever their tokens became.
 */
import { FS_ROOT, FS_ROOT_INPUT, hasFiles } from "../../../manifest/contracts/file-contract.ts"
import type { JsonObject, ToolContract } from "../../../manifest/types.ts"
import { clashing, fillTokens } from "../../../manifest/values/file-path.ts"
import { matchesAbove, parseGlob, type WorkspacePath } from "../../../manifest/values/globs.ts"
import type { Exchange } from "../../../sandbox/backend.ts"
import { timeOfUlid } from "../../data/ulid.ts"
import type { Step } from "../steps.ts"

/** The input with the one field that is the host's: whatever a caller gave under its name is not heard. */
export const withFileRoot = (tool: ToolContract, input: JsonObject): JsonObject =>
  hasFiles(tool) ? { ...input, [FS_ROOT_INPUT]: FS_ROOT } : input

const deniedBy = (deny: readonly string[], path: WorkspacePath): string | undefined =>
  deny.find((text) => {
    const parsed = parseGlob(text)
    return !parsed.ok || matchesAbove(parsed.glob, path)
  })

/** undefined where the contract has none. `call` is a ULID: its time is the call's. */
export const sealFiles = (tool: ToolContract, call: string, deny: readonly string[]): Step<Exchange | undefined> => {
  if (!hasFiles(tool)) return { ok: true, value: undefined }
  const isoDate = new Date(timeOfUlid(call)).toISOString().slice(0, 10)
  const filled = (files: ToolContract["inputsFiles"] = {}) =>
    Object.entries(files).map(([name, { path, mode }]) => ({
      name,
      path: fillTokens(path, { runId: call, toolId: tool.id, isoDate }),
      mode,
    }))
  const [inputs, outputs] = [filled(tool.inputsFiles), filled(tool.outputsFiles)]
  for (const { name, path } of [...inputs, ...outputs]) {
    const pattern = deniedBy(deny, path)
    if (pattern !== undefined)
      return {
        ok: false,
        code: "policy_violation",
        message: `the file \`${name}\` of the contract is \`${path}\`, which the driver denies itself with \`${pattern}\``,
        hint: "take the pattern out of the driver's `fs.deny`, or use another driver",
        details: { file: name, path },
      }
  }
  const clash = clashing(outputs)
  if (clash !== undefined)
    return {
      ok: false,
      code: "manifest_invalid",
      message: `the outputs \`${clash[0].name}\` and \`${clash[1].name}\` of ${tool.id} would both be \`${clash[1].path}\``,
      hint: "give each output a path of its own",
      details: { path: clash[1].path },
    }
  const given = new Set(outputs.map(({ name }) => name))
  return {
    ok: true,
    value: {
      inputs: inputs.map(({ name, path, mode }) => ({ name, path, writable: mode === "rw" || given.has(name) })),
      outputs: outputs.map(({ name, path }) => ({ name, path })),
    },
  }
}
