/**
 * The operator's ceiling: what no tool, driver or action may go beyond, whatever it declares. Pure.
 *
 * Guarantees: what goes beyond it is refused when it is registered, with an example of what would pass; a part that the
 * operator says nothing of is not bounded. A tool that leaves its hosts to its drivers is bounded by them, and
 * so is what a driver's program is given of the vault, whatever its contract requires.
 */
import { shown } from "../../manifest/values/diagnostics.ts"
import { slugOfEnv } from "../../manifest/contracts/secrets.ts"
import type { ActionContract, Diagnostic, DriverContract, SecretEntry, ToolContract } from "../../manifest/types.ts"
import { secretNeeds } from "../secrets/needs.ts"
import type { Part, Reach } from "./reach.ts"
import { widenings } from "./widening.ts"

export interface Ceiling {
  readonly riskLevel?: number
  /** effects, as `class:scope` */
  readonly mutates?: readonly string[]
  /** egress entries */
  readonly egress?: readonly string[]
  /** slugs of secrets, or variables that stand for them */
  readonly secrets?: readonly string[]
}

type Bound = Readonly<Record<string, { readonly most: Part; readonly asked: Part; readonly key: keyof Ceiling }>>

const reachOf = (parts: Reach["parts"]): Reach => ({ version: "", digest: "", parts })

const bounded = (file: string, bound: Bound): readonly Diagnostic[] => {
  const parts = (which: "most" | "asked"): Reach["parts"] =>
    Object.fromEntries(Object.entries(bound).map(([path, each]) => [path, each[which]]))
  return widenings(reachOf(parts("most")), reachOf(parts("asked"))).map(({ path, before, now, example }) => ({
    severity: "error",
    rule: "above-ceiling",
    file,
    path,
    message: `it goes beyond what the operator allows: it would let \`${shown(example)}\` pass (allowed: ${shown(before, 200)}; declared: ${shown(now, 200)})`,
    fix: `narrow it, or widen \`ceiling.${bound[path]?.key === "riskLevel" ? "risk_level" : (bound[path]?.key ?? "")}\` in caisson.yaml`,
  }))
}

/** A contract's effects, risk and needs; hosts only where it names them. */
export const contractAbove = (
  { mutates, requires, riskLevel, source }: ToolContract | ActionContract,
  ceiling: Ceiling,
): readonly Diagnostic[] => {
  const named = requires.network?.filter((host) => host !== "*") ?? []
  return bounded(source.file, {
    ...(ceiling.riskLevel === undefined
      ? {}
      : {
          risk_level: {
            most: { as: "most", of: ceiling.riskLevel },
            asked: { as: "most", of: riskLevel },
            key: "riskLevel",
          },
        }),
    ...(ceiling.mutates === undefined
      ? {}
      : {
          mutates: {
            most: { as: "effects", of: ceiling.mutates },
            asked: { as: "effects", of: mutates.map((each) => each.text) },
            key: "mutates",
          },
        }),
    ...(ceiling.egress === undefined
      ? {}
      : {
          "requires.network": {
            most: { as: "hosts", of: ceiling.egress },
            asked: { as: "hosts", of: named },
            key: "egress",
          },
        }),
    ...(ceiling.secrets === undefined
      ? {}
      : {
          "requires.secrets": {
            most: { as: "names", of: ceiling.secrets },
            asked: { as: "names", of: requires.secrets },
            key: "secrets",
          },
        }),
  })
}

/** Of the vault: as the operator writes a slug, or the variable that stands for it where no manifest says otherwise. */
const slugsOf = (names: readonly string[]): readonly string[] => names.flatMap((name) => [name, slugOfEnv(name)])

/** `inventory`: what says which secret a variable means. */
export const driverAbove = (
  driver: DriverContract,
  ceiling: Ceiling,
  inventory: readonly SecretEntry[],
): readonly Diagnostic[] => {
  const { egress, source } = driver
  const secrets = secretNeeds(driver, { requires: { secrets: [], tools: [] } }, inventory)
  return bounded(source.file, {
    ...(ceiling.egress === undefined
      ? {}
      : {
          "network.egress": {
            most: { as: "hosts", of: ceiling.egress },
            asked: { as: "hosts", of: egress.map((each) => each.text) },
            key: "egress",
          },
        }),
    ...(ceiling.secrets === undefined
      ? {}
      : {
          "auth.state.env": {
            most: { as: "names", of: slugsOf(ceiling.secrets) },
            asked: { as: "names", of: secrets.map(({ slug }) => slug) },
            key: "secrets",
          },
        }),
  })
}
