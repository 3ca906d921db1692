/** Every limit of the MCP server, once: its value, and what happens at it. */
interface McpLimit {
  readonly value: number
  readonly at: string
}
const limit = (value: number, at: string): McpLimit => Object.freeze({ value, at })

export const mcpLimits = Object.freeze({
  page: limit(100, "tools of one page; the rest is on the next"),
  textChars: limit(200_000, "of a value as text: the rest is in the structured result alone"),
  notes: limit(10, "denials told as text: the rest is in the structured result"),
  changeChars: limit(6_000, "of the changes shown in a question: the rest is at the address of the held call"),
  questionChars: limit(2_000, "of a question that a contract or its program asks: the rest is left out"),
  addressChars: limit(4_096, "of an address that is read: a longer one is nobody's"),
  queryChars: limit(400, "of a search: a longer one is refused"),
  found: limit(20, "tools that a search names"),
  blocks: limit(64, "content blocks of one value: with more it is told as text"),
  rounds: limit(8, "of questions before a call: further ones are not asked"),
  asks: limit(16, "questions of one round: further ones are not asked"),
  roots: limit(64, "folders that a client names: the rest is left out"),
  completions: limit(100, "of one argument: the rest is only counted"),
  requestBytes: limit(18 * 1024 * 1024, "one message: 413, or the connection ends"),
  depth: limit(320, "levels of one message: 400, and it is not read"),
  lastingChars: limit(
    256 * 1024,
    "of a message that begins a session or a stream, and is kept as long as it is open: 413",
  ),
  batch: limit(32, "messages of one body: 400, and none is read"),
  stateSeconds: limit(600, "a client that comes back later with an answer is refused; what is held is held on"),
  askMs: limit(
    50_000,
    "a question put while a request waits: the request is answered without; what is held is held on",
  ),
  gatherMs: limit(10, "questions that a program asks within it are put together"),
  progressMs: limit(40, "a program's word of how far it is comes no more often"),
  progressWords: limit(10_000, "of a call, told of how far it is: the rest is left out"),
  progressChars: limit(500, "of one of them: the rest is left out"),
  progressMost: limit(1_000_000_000_000, "that a program counts to: beyond it its count is left out"),
  logChars: limit(4_096, "of one line of a program's log: the rest is left out"),
  logLines: limit(1_000, "lines of a call's log: the rest is left out"),
  sessions: limit(
    1_024,
    "sessions of the old era: the one that was idle longest ends, if it was for a minute; else 503",
  ),
  sessionsOfOne: limit(32, "of one caller: their own that was idle longest ends"),
  sessionIdleMs: limit(1_800_000, "a session without a request or an open stream ends"),
  sessionFreshMs: limit(60_000, "a session that was used within it is not ended for another caller's"),
  subscriptions: limit(1_024, "open subscriptions: a further one is refused"),
  subscriptionsOfOne: limit(64, "of one caller, or watched addresses of one session: the same"),
  running: limit(256, "calls that wait for an answer or go on as tasks: a further one is not begun as one"),
  runningOfOne: limit(32, "of one caller: the same"),
  kept: limit(1_024, "those and tasks that ended, until their time is over: the same"),
  keptOfOne: limit(128, "of one caller: the same"),
  keptChars: limit(256 * 1024 * 1024, "of what tasks answered: the oldest are told by the address of their call alone"),
  keptCharsOfOne: limit(32 * 1024 * 1024, "of one caller: the same"),
  logins: limit(32, "logins that clients were asked to open a page for: a further call says `auth_required`"),
  loginsOfOne: limit(4, "of one caller: the same"),
  loginPageMs: limit(20_000, "a login that names no page within it is left to `caisson login`"),
  taskAfterMs: limit(10_000, "a call that takes longer goes on as a task, where the client knows tasks"),
  taskKeepMs: limit(
    3_600_000,
    "since a task was begun, beyond its call's own time: it is forgotten; its call is on record",
  ),
  taskPollMs: limit(1_000, "how often a client should ask how a task is"),
}) satisfies Record<string, McpLimit>
