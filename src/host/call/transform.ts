/**
 * Between route and sign-in: values that the driver's own transforms make of the call's input (C-34).
 *
 * Guarantees: they run in a sandbox of their own, all of a call in one, without network, secrets or workspace, and within a
 * time of their own; what they make is the driver's word and is taken where any unchecked value is: as data. One that
 * throws, or makes nothing, ends the call before anything else is run.
 */
import type { JsonObject, JsonValue } from "../../manifest/types.ts"
import type { Failure } from "../failure.ts"
import { type OwnTransform, ownTransforms } from "../invoke/mapping.ts"
import type { Routed, Step } from "./steps.ts"

const failed = ({ driver }: Routed, message: string, details: JsonObject): Failure => ({
  ok: false,
  code: "upstream_error",
  message: `a transform of ${driver.key} failed: ${message}; nothing was run`,
  hint: "mend `transforms` in the driver's module, or give it an input that it takes",
  details: { driver: driver.key, ...details },
})

type Value = OwnTransform & { readonly value: JsonValue }

const valuesOf = ({ route: { implementation, mappedInput } }: Routed): readonly Value[] =>
  ownTransforms(implementation.mapping).flatMap((each) => {
    const value = mappedInput[each.key]
    return value === undefined ? [] : [{ ...each, value }]
  })

export const transform = async (routed: Routed): Promise<Step<Routed>> => {
  const values = routed.anyInput === true ? [] : valuesOf(routed)
  if (values.length === 0) return { ok: true, value: routed }
  const { route, module, signal, driver } = routed
  if (module?.own === undefined)
    return failed(routed, `the module behind ${driver.key} is not there`, { reason: "module" })
  const answer = await module.own.transform(
    values.map((each) => [each.transform, each.value] as const),
    signal,
  )
  const names = [...new Set(values.map((each) => each.transform))]
  if (!answer.ok) {
    if (answer.kind === "unsealed")
      return {
        ok: false,
        code: "sandbox_unavailable",
        message: answer.message,
        ...(answer.fix === undefined ? {} : { hint: answer.fix }),
        details: { driver: driver.key },
      }
    if (signal.aborted) return { ok: false, code: "cancelled", message: "the call was cancelled", details: {} }
    if (answer.kind !== "thrown") return failed(routed, answer.message, { transforms: names })
    // Its words may hold what the caller gave: the name says enough, and the rest is in the details.
    const [exception = "Error"] = answer.thrown.names
    return failed(routed, `it threw ${exception}`, { transforms: names, exception, message: answer.thrown.message })
  }
  const made: readonly JsonValue[] = Array.isArray(answer.value) ? (answer.value as readonly JsonValue[]) : []
  if (made.length !== values.length) return failed(routed, "it gave no values", { transforms: names })
  const changed = Object.fromEntries(values.map(({ key }, index) => [key, made[index] as JsonValue]))
  return { ok: true, value: { ...routed, route: { ...route, mappedInput: { ...route.mappedInput, ...changed } } } }
}
