/**
 * TOOL.md (AIP-14) → ToolContract.
 *
 * Guarantees: the removed fields of AIP-14 are refused with the way to migrate; `inputs`, `outputs` and
 * `metadata.contextSchema` compile under our limits; approval and mutates agree (C-8); in strict mode, examples match the
 * schemas.
 * Does not: look at other files; the action a tool implements is found, checked and inherited from in catalogue.ts.
 */
import { readConform } from "../kinds/conform.ts"
import { parseApproval } from "../values/approval.ts"
import { sourceOf } from "../values/context.ts"
import type { Context, Lifted } from "../values/context.ts"
import { checkCredentials } from "../values/credentials.ts"
import { createReport, joinPath } from "../values/diagnostics.ts"
import {
  defined,
  flag,
  object,
  objects,
  optionalNumber,
  optionalObject,
  optionalText,
  text,
  texts,
} from "../values/fields.ts"
import { readRequires } from "./action.ts"
import { declareOutputs, FS_ROOT, FS_ROOT_INPUT, hasFiles, readFiles, withFsRoot } from "./file-contract.ts"
import { deepFreeze } from "../values/freeze.ts"
import { compileSchema } from "../schema/json-schema.ts"
import { parseMutates } from "../values/mutates.ts"
import { checkShape } from "../schema/shape.ts"
import { readOperation } from "./operation.ts"
import { readActionRef, unsaidIn } from "./action-ref.ts"
import { lift, refuseRemoved, settleApproval } from "./tool-mend.ts"
import type {
  CostClass,
  Diagnostic,
  DriverKind,
  JsonObject,
  JsonValue,
  RetryRule,
  ToolContract,
} from "../base-types.ts"
import { majorOf } from "../schema/version.ts"

export function readRetry(from: JsonObject | undefined): RetryRule | undefined {
  if (from === undefined) return undefined
  const backoff = text(from, "backoff") === "exponential" ? "exponential" : "fixed"
  return {
    maxAttempts: optionalNumber(from, "max_attempts") ?? 1,
    backoff,
    initialMs: optionalNumber(from, "initial_ms") ?? 0,
  }
}

function checkSchemas(front: JsonObject, context: Context): void {
  const { report } = context
  const metadata = object(front, "metadata")
  const compile = (schema: JsonValue | undefined, path: string): void => {
    const compiled = compileSchema(deepFreeze(schema))
    if (!compiled.ok) {
      const at =
        compiled.path === ""
          ? path
          : compiled.path.startsWith("[")
            ? `${path}${compiled.path}`
            : `${path}.${compiled.path}`
      report.error("schema-refused", at, compiled.message, compiled.fix)
    }
  }
  compile(front["inputs"], "inputs")
  compile(front["outputs"], "outputs")
  if (metadata["contextSchema"] !== undefined) compile(metadata["contextSchema"], "metadata.contextSchema")
  const inputType = object(front, "inputs")["type"]
  if (inputType !== undefined && inputType !== "object") {
    report.error(
      "inputs-not-object",
      "inputs.type",
      "a tool's input is always a mapping",
      "write `type: object` and put the fields under `properties`",
    )
  }
}

const faults = (errors: readonly { readonly path: string; readonly message: string }[]): string =>
  errors.map((e) => `${e.path === "" ? "it" : `\`${e.path}\``} ${e.message}`).join("; ")

/** Examples that do not match the contract's own schemas. Strict mode refuses them; `caisson validate` always tells. */
export function checkExamples(tool: ToolContract, severity: "error" | "warning"): readonly Diagnostic[] {
  const report = createReport(tool.source.file)
  const inputs = compileSchema(tool.inputs)
  const outputs = compileSchema(tool.outputs)
  const say = severity === "error" ? report.error : report.warn
  tool.examples.forEach((example, i) => {
    const at = joinPath("examples", i)
    const given = hasFiles(tool) ? { ...example.input, [FS_ROOT_INPUT]: FS_ROOT } : example.input
    const input = inputs.ok ? inputs.validate(given) : undefined
    if (input?.ok === false)
      say(
        "example-mismatch",
        joinPath(at, "input"),
        `the example's input does not match \`inputs\`: ${faults(input.errors)}`,
        "correct the example or the schema",
      )
    const output = outputs.ok && example.output !== undefined ? outputs.validate(example.output) : undefined
    if (output?.ok === false)
      say(
        "example-mismatch",
        joinPath(at, "output"),
        `the example's output does not match \`outputs\`: ${faults(output.errors)}`,
        "correct the example or the schema",
      )
  })
  return report.diagnostics
}

export function readTool(
  written: JsonObject,
  context: Context,
): { readonly contract: ToolContract; readonly lifted: Lifted } | undefined {
  const { report } = context
  const { front: lean, lifted } = lift(written, context)
  const current = refuseRemoved(lean, context)
  // What a tool leaves out, its action says; that is known when all manifests are.
  const inherits = current["implements"] !== undefined && current["implements"] !== null
  const kept = inherits && current["mutates"] === undefined ? current : declareOutputs(current, context)
  const front = inherits && kept["approval"] === undefined ? kept : settleApproval(kept, context)
  checkCredentials(written, report)
  if (!checkShape("tool", front, report)) return undefined
  checkSchemas(front, context)
  const metadata = object(front, "metadata")
  const constraints = object(front, "driver_constraints")
  const version = text(front, "version")
  const files = readFiles(front, context)
  const contract: ToolContract = defined({
    kind: "tool" as const,
    id: text(front, "id"),
    name: text(front, "name"),
    description: text(front, "description"),
    version,
    major: majorOf(version),
    inputs: hasFiles(files) ? withFsRoot(object(front, "inputs"), report) : object(front, "inputs"),
    outputs: object(front, "outputs"),
    contextSchema: optionalObject(metadata, "contextSchema"),
    idempotent: flag(front, "idempotent"),
    mutates: parseMutates(texts(front, "mutates"), report),
    requires: readRequires(front, context),
    approval: parseApproval(optionalText(front, "approval") ?? "auto"),
    riskLevel: (optionalNumber(front, "risk_level") ?? 0) as ToolContract["riskLevel"],
    costClass: (optionalText(front, "cost_class") ?? "trivial") as CostClass,
    timeoutMs: optionalNumber(front, "timeout_ms") ?? 30_000,
    retry: readRetry(optionalObject(front, "retry")),
    defaultImplementation: optionalText(front, "default_implementation"),
    driverConstraints: {
      forbid: texts(constraints, "forbid") as readonly DriverKind[],
      requireKind: texts(constraints, "require_kind") as readonly DriverKind[],
    },
    ...readActionRef(front, context),
    unsaid: inherits ? unsaidIn(front) : undefined,
    ...files,
    tags: texts(front, "tags"),
    examples: objects(front, "examples").map((e) =>
      defined({ name: text(e, "name"), input: object(e, "input"), output: e["output"], note: optionalText(e, "note") }),
    ),
    conform: readConform(metadata, "tool", report),
    metadata,
    operation: readOperation(metadata, report),
    source: sourceOf(context, written),
  })
  if (report.failed) return undefined
  deepFreeze(contract)
  if (context.mode === "strict")
    for (const d of checkExamples(contract, "error")) report.error(d.rule, d.path, d.message, d.fix)
  return report.failed ? undefined : { contract, lifted }
}
