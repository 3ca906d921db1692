/** Every field of an ARuntime `*.tool.json`, and what becomes of it. docs/formats.md holds the same table; a test compares. */
import type { FieldRow } from "../format.ts"

const row = (field: string, goes: string): FieldRow => ({ field, goes })

export const aruntimeFields: readonly FieldRow[] = [
  row("toolId", "`id`, with `_` as `-`; as written in `metadata.origin.id`"),
  row("version", "`version`"),
  row("name", "`name`; absent: `toolId`"),
  row("description", "`description`"),
  row("owner", "`metadata.origin.owner`"),
  row("inputSchema", "`inputs`"),
  row("outputSchema", "`outputs`"),
  row("dataClassification", "`metadata.operation.data_classification`: in every receipt of the tool"),
  row(
    "egressPolicy",
    "`requires.network`: a list of hosts, `none`, or `{ allow: […] }`; the driver's own list is cut to it",
  ),
  row("authenticationRef", "`requires.secrets`: a secret by reference; the vault has its value"),
  row(
    "permissionClass",
    "`metadata.operation.permission_class`: in every receipt; the tag `permission-…`, for policies",
  ),
  row("approvalTriggers", "`approval: always` where there is any: this host cannot tell when one applies"),
  row("sideEffectClass", "`risk_level`, `approval`, `mutates`, `driver_constraints`, by the table of classes"),
  row(
    "idempotency",
    "`idempotent`: true of `natural`, `idempotent`, or `true`; a key is the caller's `Idempotency-Key`",
  ),
  row(
    "compensation",
    "`metadata.operation.compensation`: the tool that undoes it, named where a call of this one ended half-way",
  ),
  row("timeoutSeconds", "`timeout_ms`"),
  row("retryPolicy.maxAttempts", "`retry.max_attempts`"),
  row("retryPolicy.backoff", "`retry.backoff`: `fixed`, `exponential`; `none` is `fixed`"),
  row("retryPolicy.initialDelayMs", "`retry.initial_ms`"),
  row("retryPolicy.retryOn", "`metadata.operation.errors[].retryable`: no other error is tried again"),
  row("concurrency", "`metadata.operation.concurrency`: calls at once in one host; a number, or `{ max }`"),
  row("rateLimits", "`metadata.operation.rate`: `{ perMinute, burst }`, shared by all hosts on the data folder"),
  row("errors", "`metadata.operation.errors`: `code`, `meaning`, `action`, `retryable`; a list, or by code"),
  row("observability", "`metadata.origin.observability`; what is recorded is the host's: receipts, metrics, log"),
  row("auditFields", "`metadata.operation.audit_fields`: digests of these fields of the input, in every receipt"),
  row("deprecation.introduced", "`metadata.operation.deprecation.introduced`"),
  row("deprecation.deprecated", "`metadata.operation.deprecation.deprecated`: from then on noted in each result"),
  row("deprecation.removal", "`metadata.operation.deprecation.removed`: from then on calls are refused"),
  row("deprecation.replacement", "`metadata.operation.deprecation.replacement`: named in the note and the refusal"),
  row("deprecation.compatibility", "`metadata.operation.deprecation.compatibility`"),
  row("deprecation.affectedPolicies", "`metadata.origin.affected_policies`"),
]
