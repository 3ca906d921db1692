/**
 * Every reason a call can end with, once: code, class, HTTP status, exit code, message, hint.
 *
 * Guarantees: API, CLI, receipts, metrics and docs read this table and nothing else; a code that is not here
 * does not exist. Tools add their own as `domain:code` (class `tool`).
 */

export type ErrorClass = "invalid" | "routing" | "needs-action" | "denied" | "violation" | "tool" | "infrastructure"

export interface Reason {
  readonly class: ErrorClass
  readonly status: number
  readonly exit: number
  readonly retryable: boolean
  readonly message: string
  readonly hint: string
}

const reason = (
  cls: ErrorClass,
  status: number,
  exit: number,
  message: string,
  hint: string,
  retryable = false,
): Reason => Object.freeze({ class: cls, status, exit, retryable, message, hint })

export const reasons = Object.freeze({
  input_invalid: reason(
    "invalid",
    400,
    2,
    "the input does not match the tool's schema",
    "compare the input with `inputs` in the tool's TOOL.md",
  ),
  input_unsupported: reason(
    "invalid",
    400,
    2,
    "no driver left supports an input that this call uses",
    "leave the named input out, or register a driver that supports it",
  ),
  manifest_invalid: reason(
    "invalid",
    422,
    2,
    "a manifest is invalid",
    "run `caisson validate` on it and apply the fixes it names",
  ),
  not_found: reason("invalid", 404, 2, "there is nothing by that name", "`caisson tools` lists what is registered"),
  conflict: reason(
    "invalid",
    409,
    2,
    "the workspace changed underneath the call",
    "run the call again on the current state of the workspace",
    true,
  ),

  no_route: reason(
    "routing",
    503,
    5,
    "no driver can serve this call",
    "`caisson why TOOL` shows why each driver was dropped",
  ),
  pinned_provider_unavailable: reason(
    "routing",
    503,
    5,
    "the pinned driver cannot serve this call",
    "unpin it, or mend what `caisson why TOOL` names",
  ),
  tool_unavailable: reason(
    "routing",
    503,
    5,
    "the program behind the driver is not there",
    "install it as `caisson drivers` says",
  ),
  install_failed: reason(
    "routing",
    503,
    5,
    "the driver could not be installed",
    "install the program by hand as the message says",
  ),
  version_mismatch: reason(
    "routing",
    503,
    5,
    "the installed program is of another version than the driver asks for",
    "install a version in the range the driver names",
  ),
  function_ref_unresolvable: reason(
    "routing",
    503,
    5,
    "the driver names a function that is not there",
    "correct `function_ref` in the driver",
  ),
  execute_binding_mismatch: reason(
    "routing",
    503,
    5,
    "the driver's functions and its `implements` list differ",
    "make the keys of `execute` equal to `implements`",
  ),

  auth_required: reason(
    "needs-action",
    401,
    4,
    "the driver needs a login",
    "run `caisson login DRIVER`, or set the secrets that `details` names (`caisson secrets set`)",
  ),
  auth_failed: reason("needs-action", 401, 4, "the login failed", "read why, then run `caisson login DRIVER` again"),
  setup_required: reason(
    "needs-action",
    428,
    4,
    "the driver has set-up steps that were not done",
    "run `caisson login DRIVER`: it goes through them",
  ),
  setup_failed: reason(
    "needs-action",
    428,
    4,
    "a set-up step failed",
    "mend what the step names and run `caisson login DRIVER` again",
  ),
  approval_required: reason(
    "needs-action",
    428,
    4,
    "this call needs a person's approval",
    "a person looks at the effects, then approves or denies the held call",
  ),
  approval_expired: reason(
    "needs-action",
    410,
    4,
    "nobody answered in time; the effects are gone",
    "run the call again",
  ),
  approval_denied: reason("needs-action", 403, 4, "a person denied this call", "ask the approver, or change the call"),

  policy_violation: reason(
    "denied",
    403,
    3,
    "the operator's policy forbids this call",
    "ask the operator; `caisson why TOOL` names the rule",
  ),
  unauthorised: reason(
    "denied",
    403,
    3,
    "this user may not make this call",
    "ask the operator for the role or the grant that it takes",
  ),
  rate_limited: reason("denied", 429, 3, "too many calls", "wait and try again", true),
  overloaded: reason("denied", 503, 3, "the host has as much to do as it can take", "try again in a moment", true),
  budget_exceeded: reason(
    "denied",
    429,
    3,
    "a budget of this call is used up",
    "raise the named budget in the contract or the host's policy",
  ),

  undeclared_write: reason(
    "violation",
    403,
    3,
    "the tool wrote outside what its contract declares; nothing was committed",
    "declare the path in `mutates` of the tool, and in `sandbox.fs.write` of a driver that has one, or fix the tool",
  ),
  undeclared_exec: reason(
    "violation",
    403,
    3,
    "the tool ran a program that its driver does not declare; nothing was committed",
    "set `exec.allow: true` and list the program in `exec.spawn`, or fix the tool",
  ),
  egress_denied: reason(
    "violation",
    403,
    3,
    "the tool dialled a host that its driver does not declare; nothing was committed",
    "declare the host in `network.egress`, or fix the tool",
  ),
  secret_misuse: reason(
    "violation",
    403,
    3,
    "the tool sent a secret's placeholder where it does not belong; nothing was committed",
    "send it only in a header, only to the hosts bound to the secret",
  ),

  upstream_error: reason("tool", 502, 1, "the tool failed", "read `details.stderr`"),
  output_parse_failed: reason(
    "tool",
    502,
    1,
    "the tool's output could not be parsed",
    "check the driver's `output` block against what the program prints",
  ),
  output_invalid: reason(
    "tool",
    502,
    1,
    "the tool's output does not match the contract",
    "compare the output with `outputs` in the tool's TOOL.md",
  ),
  timeout: reason(
    "tool",
    504,
    1,
    "the tool took longer than its contract allows; nothing was committed",
    "give it less to do, or raise `timeout_ms` in the contract",
    true,
  ),
  partial_effect: reason(
    "tool",
    502,
    1,
    "the tool did a part of what it was asked, and not the rest",
    "read `details`; look at what was done before it is run again",
  ),
  compensation_failed: reason(
    "tool",
    502,
    1,
    "what the tool was to undo is not undone",
    "have a person look at what was done and what is left of it",
  ),
  cancelled: reason("tool", 499, 1, "the call was cancelled; nothing was committed", "run it again when wanted"),
  limit_exceeded: reason(
    "tool",
    507,
    1,
    "the tool hit a limit; nothing was committed",
    "give it less to do, or raise the named limit",
  ),

  sandbox_unavailable: reason(
    "infrastructure",
    503,
    5,
    "a control that this call needs cannot be enforced here; nothing was run",
    "`caisson doctor` says what is missing and how to mend it",
  ),
  commit_failed: reason(
    "infrastructure",
    500,
    5,
    "the effects could not be committed; the workspace is as before",
    "free disk space or mend permissions, then run it again",
    true,
  ),
  internal: reason(
    "infrastructure",
    500,
    5,
    "the host itself failed; nothing was committed",
    "run it again; if it stays, report it with the receipt",
    true,
  ),
}) satisfies Record<string, Reason>

export type ReasonCode = keyof typeof reasons
