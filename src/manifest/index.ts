/** `caisson/manifest`: manifests → frozen contracts, and the pure checks around them. */
import "./node-version.ts"
export { approvalRank, relaxesApproval } from "./values/approval.ts"
export { checkBinding, checkEntry, checkExecuteKeys, checkRevision, settleMapping } from "./contracts/binding.ts"
export { buildCatalogue } from "./read/catalogue.ts"
export type { Catalogue } from "./read/catalogue.ts"
export {
  defineAction,
  defineCli,
  defineDriver,
  definePolicy,
  defineSecret,
  defineTool,
  ManifestError,
} from "./define.ts"
export type { DefineOptions } from "./define.ts"
export { digestOf, jcs, sha256 } from "./values/digest.ts"
export type { Digest } from "./values/digest.ts"
export { discoverManifests } from "./read/discover.ts"
export { coversName, intersectEgress, parseEgressEntry } from "./values/egress-entry.ts"
export type { EgressEntry, EgressEntryResult } from "./values/egress-entry.ts"
export { canonicalGlob, globCovers } from "./values/sandbox-globs.ts"
export { compileSchema } from "./schema/json-schema.ts"
export type { CompiledSchema, Validation, ValueFault } from "./schema/json-schema.ts"
export { manifestKind } from "./read/kind.ts"
export { loadManifest } from "./read/load.ts"
export { compilePattern } from "./schema/pattern.ts"
export type { SafePattern } from "./schema/pattern.ts"
export { policySlug } from "./contracts/policy.ts"
export { checkSecretBindings, matchSecretSlug, slugOfEnv } from "./contracts/secrets.ts"
export { checkExamples } from "./contracts/tool.ts"
export { coerceVersion, isSemver, parseRange, parseVersionOutput, satisfies } from "./schema/version.ts"
export type * from "./types.ts"
