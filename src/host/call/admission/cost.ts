/** What a call costs by its tool and the driver that would serve it. Pure. */
import type { CostClass } from "../../../manifest/types.ts"
import type { Cost, Routed } from "../steps.ts"

const CLASSES: readonly CostClass[] = ["trivial", "metered", "expensive"]

/** The dearer class of the tool's and the driver's; units are the driver's own word. */
export const costOf = ({ tool, route }: Pick<Routed, "tool" | "route">): Cost => {
  const row = route.rows.find(({ phase }) => phase === "selected")
  const rank = Math.max(CLASSES.indexOf(tool.costClass), CLASSES.indexOf(row?.costClass ?? "trivial"))
  const units = row?.costUnitsPerCall
  return {
    class: CLASSES[rank] ?? "expensive",
    ...(units === undefined ? {} : { units, currency: row?.currency ?? "USD" }),
  }
}
