/** Every limit of the daemon, once: its value, and what happens at it. */
interface DaemonLimit {
  readonly value: number
  readonly at: string
}
const limit = (value: number, at: string): DaemonLimit => Object.freeze({ value, at })
const MiB = 1024 * 1024

export const daemonLimits = Object.freeze({
  headerBytes: limit(16 * 1024, "431, and the connection ends"),
  headerMs: limit(10_000, "a client that is slower with its headers: 408, and the connection ends"),
  requestMs: limit(60_000, "a client that is slower with its request: 408, and the connection ends"),
  idleMs: limit(5_000, "a connection without a request ends"),
  connections: limit(2_048, "a further connection of a listener is closed"),
  callBytes: limit(18 * MiB, "the body of a call: 413"),
  bodyBytes: limit(256 * 1024, "any other body: 413"),
  pathChars: limit(256, "one part of an address: 414"),
  tapeEvents: limit(4_096, "the oldest events of a call are forgotten; a stream that missed them is told"),
  tapeBytes: limit(2 * MiB, "the same"),
  tapes: limit(512, "calls that ended whose events are still told; the oldest are forgotten"),
  tapesBytes: limit(64 * MiB, "what they take all together; the oldest that ended are forgotten"),
  tapeMs: limit(600_000, "since a call ended: its events are forgotten"),
  streamBytes: limit(256 * 1024, "what a slow reader has not taken: it is told no more until it has"),
  streamStallMs: limit(60_000, "a reader that takes nothing for so long: its stream ends"),
  heartbeatMs: limit(15_000, "a stream without events says that it is there"),
  plans: limit(64, "plans whose changes can still be asked for; the oldest are forgotten"),
  exports: limit(4, "a further export of receipts: overloaded"),
  exportStallMs: limit(60_000, "a reader that takes nothing for so long: its export ends"),
  jobs: limit(32, "a further login or install: overloaded"),
  jobsOfOne: limit(4, "of one user: overloaded"),
  jobsTold: limit(128, "logins and installs that ended and can still be looked at; the oldest are forgotten"),
  jobKeepMs: limit(600_000, "since one ended: it is forgotten"),
  loginMs: limit(900_000, "a login whose person does not come: it is ended"),
  installMs: limit(3_600_000, "an install that takes longer is ended"),
  loginPages: limit(16, "pages that a login asks to have opened; the oldest are forgotten"),
  loginAnswers: limit(64, "answers given before they were asked for: input_invalid"),
  loginTerminalBytes: limit(64 * 1024, "what a login's program printed; the oldest is forgotten"),
  loginTypedBytes: limit(256 * 1024, "what was typed for it and it has not read: input_invalid"),
  freshMs: limit(3_600_000, "the folder of calls that name none is touched so often"),
  traceSpans: limit(8_192, "spans that wait for the collector; further ones are dropped and counted"),
  traceBatch: limit(1_024, "spans of one request to the collector; the rest waits"),
  traceEveryMs: limit(5_000, "spans wait for at most so long to be sent"),
  traceMs: limit(10_000, "a collector that takes longer: once more, then its spans are dropped"),
  traceCloseMs: limit(3_000, "spans that are not delivered by then, when the daemon ends, are lost"),
  authFailures: limit(20, "wrong tokens a minute from one address: rate_limited"),
  diskFullBytes: limit(16 * MiB, "free on the data folder's disk: calls are refused before they run"),
  diskFullInodes: limit(256, "the same"),
  diskLowBytes: limit(512 * MiB, "and less than a tenth of it: the daemon says that it is degraded"),
  placeMs: limit(5_000, "for so long it counts that the data folder could be written to, and the store read"),
  canaryMs: limit(3_600_000, "for so long it counts that sandboxes are sealed; then the canaries run again"),
  canaryAgainMs: limit(60_000, "the same, where they are not"),
  pipelined: limit(64, "requests of one connection, sent before the first is answered: it ends"),
  closeMs: limit(30_000, "calls still running when the daemon is told to end are cancelled"),
}) satisfies Record<string, DaemonLimit>
