/**
 * Switches off the egress proxy's rules, one at a time, and shows that at least one corpus case turns red for each.
 *
 * A rule that no case holds could be deleted without anyone noticing; this script fails when there is one.
 * Run: node scripts/mutation-check.ts
 */
import { hostRules, nameRules } from "../src/egress-proxy/policy/authority.ts"
import { framingRules } from "../src/egress-proxy/http/framing.ts"
import { headerRules, headRules, requestLineRules } from "../src/egress-proxy/http/head.ts"
import { standaloneRules } from "../src/egress-proxy/policy/rules.ts"
import { type EgressCase, egressCases } from "../test/corpus/egress-cases.ts"
import { faultsOnWire, judgePure, runOnWire } from "../test/corpus/egress-runner.ts"

const listed = [...hostRules, ...nameRules, ...headRules, ...requestLineRules, ...headerRules, ...framingRules]
const rules: readonly string[] = [...new Set([...listed.map((rule) => rule.name), ...standaloneRules])]

const title = (one: EgressCase): string => `row ${one.row}: ${one.name}`

function redWithoutIo(off: ReadonlySet<string>): string | undefined {
  const red = egressCases.find((one) => one.wireOnly !== true && judgePure(one, off) !== one.reason)
  return red === undefined ? undefined : title(red)
}

async function redOnWire(off: ReadonlySet<string>): Promise<string | undefined> {
  for (const one of egressCases) {
    const faults = faultsOnWire(one, await runOnWire(one, { off }))
    if (faults.length > 0) return `${title(one)} (${faults[0]})`
  }
  return undefined
}

let unheld = 0
for (const rule of rules) {
  const off = new Set([rule])
  const red = redWithoutIo(off) ?? (await redOnWire(off))
  if (red === undefined) unheld += 1
  process.stdout.write(`${red === undefined ? "NOT HELD" : "held    "}  ${rule.padEnd(28)} ${red ?? ""}\n`)
}
process.stdout.write(`${rules.length - unheld} of ${rules.length} rules are held by a case\n`)
process.exitCode = unheld === 0 ? 0 : 1
