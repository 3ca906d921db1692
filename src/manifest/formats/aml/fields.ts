/** Every field of an AML `*.tool.md`, and what becomes of it. docs/formats.md holds the same table; a test compares. */
import type { FieldRow } from "../format.ts"

const row = (field: string, goes: string): FieldRow => ({ field, goes })

export const amlFields: readonly FieldRow[] = [
  row("spec_version", "must be one that this host approves (`1.2`); `metadata.origin.spec_version`"),
  row("tool_id", "`id`, with `_` as `-`; as written in `metadata.origin.id`"),
  row("version", "`version`"),
  row(
    "status",
    "`metadata.operation.status`: `disabled` refuses calls (`tool_unavailable`), `deprecated` and `draft` are noted",
  ),
  row("meta.name", "`name`"),
  row("meta.description", "`description`"),
  row("meta.owner", "`metadata.origin.owner`"),
  row("meta.tags", "`tags`, those that can be ones"),
  row("meta.last_updated", "`metadata.origin.last_updated`; missing in a deprecated tool: a warning"),
  row(
    "type",
    "`mutates`, `approval`, `risk_level`; `human` asks a person, whose answer is the approval; `metadata.origin.type`",
  ),
  row("interface.input", "`inputs`"),
  row("interface.output", "`outputs`; of a `human` tool also the form that a person fills in"),
  row("error_codes.*.meaning", "`metadata.operation.errors[].meaning`, told in the error's message"),
  row("error_codes.*.agent_action", "`metadata.operation.errors[].action`, the error's `hint`"),
  row(
    "transport.type",
    "the kind of driver: `rest-api` http, `mcp` mcp, `database` and `human` functions of the host; `lambda`, `message-queue` registered as unavailable; of a `human` tool checked for its type, and not used",
  ),
  row("transport.base_url", "`base_url` and `network.egress` of the driver"),
  row("transport.endpoint", "`metadata.http.method` and `endpoint`; `{name}` is a field of the input"),
  row("transport.timeout_ms", "`timeout_ms`, 5000 where absent"),
  row("transport.retry_policy.max_attempts", "`retry.max_attempts`, 3 where absent; 1 switches it off"),
  row("transport.retry_policy.on_status", "`metadata.operation.retry_on_status`: no other status is tried again"),
  row("transport.url", "`server.url` and `network.egress` of the MCP driver"),
  row("transport.tool_name", "`metadata.mcp.tool_name`"),
  row("transport.protocol_version", "`protocol_version` of the MCP driver"),
  row("transport.provider", "checked; said in why the tool is unavailable"),
  row("transport.function_id", "checked; `metadata.origin.transport`, for a driver of the operator's"),
  row("transport.invocation_type", "checked; `metadata.origin.transport`"),
  row("transport.payload_format", "checked; `metadata.origin.transport`"),
  row("transport.queue_url", "checked; `metadata.origin.transport`"),
  row("transport.message_format", "checked; `metadata.origin.transport`"),
  row("transport.response_queue_url", "checked; `metadata.origin.transport`"),
  row(
    "transport.engine",
    "the host's function: `postgresql`, `mysql` (MariaDB too); others are registered as unavailable",
  ),
  row("transport.query_method", "`parameterised-sql`; `orm` is unavailable, because there is no statement in it"),
  row(
    "transport.credentials.scheme",
    "where the secret goes: `bearer-token` into `Authorization`, `api-key` into `X-API-Key` or the annotated header; `iam-role` is unavailable",
  ),
  row(
    "transport.credentials.source",
    "`env` is the vault; a cloud's store is named, and its value is asked of the vault",
  ),
  row("transport.credentials.name", "`auth.state.env` of the driver"),
  row("transport.credentials.secret_id", "`auth.state.env` of the driver, in upper case"),
  row("transport.credentials.provider", "checked for `oauth2`; the login itself is `logins` in caisson.yaml"),
  row("transport.credentials.function_id", "checked for `oauth2`; not called"),
  row("credentials.*", "as `transport.credentials`, where that is absent"),
  row("use_guidance.use_when", "`description`"),
  row("use_guidance.avoid_when", "`description`"),
  row("use_guidance.side_effects", "`description`"),
]
