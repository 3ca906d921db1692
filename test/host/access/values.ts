/** Hand-made policies and actions for the tests of access. */
import type { ActionContract, GovernanceRule, GrantSet, GrantsPolicy } from "../../../src/manifest/types.ts"
import { toolOf } from "../call/values.ts"

export { toolOf }

export const actionOf = (change: Partial<ActionContract> = {}): ActionContract => ({
  kind: "action",
  id: "notes:append",
  description: "",
  version: "1.4.0",
  category: "notes",
  verb: "append",
  targetKind: "notes",
  mutates: [],
  requires: { secrets: [], tools: [] },
  approval: { class: "auto" },
  riskLevel: 0,
  firesEvents: [],
  source: toolOf().source,
  ...change,
})

export const policyOf = (change: Partial<GrantSet> = {}, id = "@acme/team"): GrantsPolicy => ({
  kind: "policy",
  dialect: "grants",
  id,
  grants: { default: "deny", grants: [], limits: [], requirements: [], defaults: {}, ...change },
  source: toolOf().source,
})

export const ruleOf = ({
  match = {},
  ...change
}: Partial<Omit<GovernanceRule, "match">> & { match?: Partial<GovernanceRule["match"]> } = {}): GovernanceRule => ({
  slug: "review",
  version: "1.0.0",
  match: { action: "*", riskLevelMin: 0, ...match },
  decision: "require-approval",
  signers: [],
  quorum: 1,
  autonomy: 2,
  ...change,
})
