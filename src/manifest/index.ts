/** `caisson/manifest`: manifests → frozen contracts, and the pure checks around them. */
import "./node-version.ts"
export { approvalRank, relaxesApproval } from "./approval.ts"
export { checkBinding, checkEntry, checkExecuteKeys, checkRevision, settleMapping } from "./binding.ts"
export { buildCatalogue } from "./catalogue.ts"
export type { Catalogue } from "./catalogue.ts"
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
export { digestOf, jcs, sha256 } from "./digest.ts"
export type { Digest } from "./digest.ts"
export { discoverManifests } from "./discover.ts"
export { coversName, intersectEgress, parseEgressEntry } from "./egress-entry.ts"
export type { EgressEntry, EgressEntryResult } from "./egress-entry.ts"
export { canonicalGlob, globCovers } from "./sandbox-globs.ts"
export { compileSchema } from "./json-schema.ts"
export type { CompiledSchema, Validation, ValueFault } from "./json-schema.ts"
export { manifestKind } from "./kind.ts"
export { loadManifest } from "./load.ts"
export { compilePattern } from "./pattern.ts"
export type { SafePattern } from "./pattern.ts"
export { policySlug } from "./policy.ts"
export { checkSecretBindings, matchSecretSlug, slugOfEnv } from "./secrets.ts"
export { checkExamples } from "./tool.ts"
export { coerceVersion, isSemver, parseRange, parseVersionOutput, satisfies } from "./version.ts"
export type * from "./types.ts"
