/** `caisson/egress-proxy`: the allowlisting proxy on its own. What is not exported here is not API. */
import "../manifest/node-version.ts"
export {
  createEgressProxy,
  type EgressProxy,
  type EgressProxyOptions,
  type ProxyChannel,
  type ProxyCounters,
} from "./proxy.ts"
export type { Dialled, HostedDial, HostedRequest } from "./serve/hosted.ts"
export type { Listen, PolicyInput } from "./policy/options.ts"
export { PolicyError } from "./policy/compile.ts"
export { type Reason, type ReasonClass, type ReasonCode, reasons } from "./policy/reasons.ts"
export { parseTape, tapeText } from "./tape/file.ts"
export { createPlayer } from "./tape/player.ts"
export { createRecorder } from "./tape/recorder.ts"
export type { Player, Recorder, Tape, TapeExchange } from "./tape/words.ts"
export { type Explained, explainDenial, namedDenial, type Stopped } from "./policy/explain.ts"
export type { TokenKeep, TokenLogin, TokenTurn } from "./tokens/held.ts"
export { defaultBudgets } from "./policy/budgets.ts"
export { defaultLimits, type ProxyLimits } from "./limits.ts"
export type { Denial, VerdictLogger } from "./policy/verdict-log.ts"
export type {
  Dial,
  EgressBudgets,
  EgressCapture,
  EgressPolicy,
  EgressServices,
  EgressSubstitution,
  Protocol,
  Resolve,
  Resolved,
  Verdict,
} from "./types.ts"
