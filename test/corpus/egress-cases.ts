/**
 * The egress corpus: what a hostile or clumsy client sends, and what must come of it.
 *
 * Each case is raw bytes (one character a byte) sent to the proxy's port, perhaps more bytes once a tunnel stands,
 * and the verdict that must be recorded last. The same data drives the pure core, the wire, and sandboxes. `row` is
 * the stable number of the case class; a row may have many cases.
 */
import { answers } from "./egress/answers.ts"
import type { EgressCase } from "./egress/case.ts"
import { forms } from "./egress/forms.ts"
import { http } from "./egress/http.ts"
import { literals } from "./egress/literals.ts"
import { names } from "./egress/names.ts"
import { rawTcp } from "./egress/raw-tcp.ts"
import { tls } from "./egress/tls.ts"

export { corpusPolicy, type EgressCase, okResponse, publicAddress } from "./egress/case.ts"

export const egressCases: readonly EgressCase[] = [
  ...names,
  ...forms,
  ...literals,
  ...answers,
  ...tls,
  ...http,
  ...rawTcp,
]

/** Rows of the table that are no bytes on one connection: where they are shown, or why they are not. */
export const elsewhere: Readonly<Record<number, string>> = {
  20: "test/manifest: refused when the manifest is loaded; test/egress-proxy/policy/options.test.ts holds it for createEgressProxy",
  21: "test/manifest: refused when the manifest is loaded; test/egress-proxy/policy/options.test.ts holds it for createEgressProxy",
  56: "test/egress-proxy/lifecycle.test.ts: dials the vetted address although the answer changes",
  57: "test/egress-proxy/dial/resolve.test.ts: an alias to another name is allowed and its chain is in the verdict; its end is vetted",
  59: "test/egress-proxy/lifecycle.test.ts: resolves once per connection and keeps no answer",
  62: "from inside a sandbox: there is no route; the DNS responder and transparent listeners log attempts (test/egress-proxy/channel.test.ts)",
  63: "test/egress-proxy/policy/budgets.test.ts: cuts endless subdomains at the budget of names",
  65: "from inside a sandbox: the proxy resolves, so a hosts file there has no say",
  75: "a Host inside TLS that is not ended here cannot be seen; stated in SECURITY.md",
  77: "test/egress-proxy/tls: upstream certificates in interception",
  97: "there are no path rules",
  99: "test/egress-proxy/channel.test.ts: refuses an address that was never handed out",
  100: "test/egress-proxy/channel.test.ts: refuses an address of an older generation",
  102: "from inside a sandbox: there is no route but the channel",
  103: "test/egress-proxy/channel.test.ts: takes the proxy's port on another address for what it is",
  104: "from inside a sandbox: no sockets of the host are present",
  105: "the channel is the identity: one proxy, one set of listeners per call; there is no token",
  106: "there is no token to replay",
  107: "there is no token to guess; Proxy-Authorization is never read and never forwarded (row 86)",
  108: "test/egress-proxy/requests.test.ts: caps, slow heads, endless chunks",
  109: "test/egress-proxy/lifecycle.test.ts: half-close, reset, counters",
  110: "test/egress-proxy/lifecycle.test.ts: closes tunnels of an older generation",
  111: "test/egress-proxy/lifecycle.test.ts: passes nothing when a verdict cannot be recorded",
  112: "from inside a sandbox: the listeners are the host's, so they die with it",
  113: "test/egress-proxy/policy/budgets.test.ts: each budget at n and n+1",
  114: "test/egress-proxy/secrets.test.ts: placeholders in the wrong place",
}
