/**
 * Every limit of the host, once: who owns it, its value, what happens at it.
 *
 * Guarantees: nothing in src/host carries a number of this kind of its own. A contract, a driver or the operator may
 * narrow the per-call limits; only the operator may raise a default, up to the ceiling written here.
 */
import type { EgressBudgets } from "../egress-proxy/types.ts"
import type { Limits } from "../sandbox/backend.ts"

interface HostLimit {
  readonly owner: string
  readonly value: number
  readonly at: string
}

const limit = (owner: string, value: number, at: string): HostLimit => Object.freeze({ owner, value, at })
const MiB = 1024 * 1024

/** What one call may use where neither contract, driver nor operator says otherwise. */
const callLimits = Object.freeze({
  wallMs: limit("the contract's timeout_ms", 30_000, "the tree is killed; timeout"),
  memoryBytes: limit("the sandbox", 1024 * MiB, "the kernel kills the tree; limit_exceeded"),
  pids: limit("the sandbox", 256, "fork fails with EAGAIN; reported as a denial"),
  diskBytes: limit("the sandbox", 1024 * MiB, "the tree is killed, or fails at the end of its count; limit_exceeded"),
  outputBytes: limit(
    "the sandbox",
    8 * MiB,
    "the rest of the stream is dropped, with a note; limit_exceeded where the output is not text",
  ),
  openFiles: limit("the sandbox", 1024, "open fails with EMFILE"),
}) satisfies Record<string, HostLimit>

export const defaultLimits: Limits = Object.freeze({
  wallMs: callLimits.wallMs.value,
  memoryBytes: callLimits.memoryBytes.value,
  pids: callLimits.pids.value,
  diskBytes: callLimits.diskBytes.value,
  outputBytes: callLimits.outputBytes.value,
  openFiles: callLimits.openFiles.value,
})

/** What one call's channel may carry. */
export const egressBudgets: EgressBudgets = Object.freeze({
  bytesOut: 1024 * MiB,
  bytesIn: 4096 * MiB,
  requests: 10_000,
  connections: 256,
  distinctNames: 256,
  connectTimeoutMs: 10_000,
  idleTimeoutMs: 60_000,
})

export const hostLimits = Object.freeze({
  inputBytes: limit("admit", 16 * MiB, "input_invalid"),
  nameChars: limit("admit", 4_096, "of a tool, a driver or a workspace: input_invalid, before anything is looked for"),
  writableEntries: limit(
    "admit",
    2_000,
    "a workspace whose folder is closed to writing and that has more entries is admitted without a look at the rest",
  ),
  contextBytes: limit("admit", MiB, "input_invalid"),
  registeredReaches: limit("the registry", 50_000, "of manifests that nobody vouches for, the oldest are forgotten"),
  takenSets: limit("the registry", 64, "the oldest set of manifests is looked up again"),
  reloadFaults: limit("reloads", 20, "further faults of what was not taken are not told"),
  runMs: limit("a command of `run`", 24 * 3600 * 1000, "the tree is killed; timeout"),
  runNames: limit("a command of `run`", 256, "of hosts, globs, programs and secrets, each: input_invalid"),
  waitMs: limit("calls that wait for their workspace", 3_600_000, "a longer wait is cut to this"),
  concurrentCalls: limit("the host", 64, "the call, listing or question waits for a place"),
  concurrentProbes: limit("version checks", 4, "the check waits for a place"),
  probeMs: limit("version checks", 120_000, "waiting included: the driver counts as unavailable, and is asked again"),
  probeRetryMs: limit("version checks", 60_000, "a check that ran out of time is not run again before"),
  moduleMs: limit("a driver's module without a call", 10_000, "it is ended, and what asked for it hears of it"),
  mountedModules: limit("modules of Amplifier's", 256, "the oldest that was looked into is looked into again"),
  talkMs: limit("a talk outside a call", 30_000, "the program is ended, and the driver counts as unavailable"),
  healthStaleMs: limit(
    "health checks",
    300_000,
    "a result that is older is not relied on: the driver is checked again",
  ),
  healthReasonChars: limit("health checks", 300, "the rest of why a driver is not well is left out"),
  healthRecordBytes: limit("health checks", 4096, "a longer record is not read, and the driver is checked again"),
  nestedDepth: limit(
    "calls within calls",
    3,
    "a call that deep may ask for no further one: limit_exceeded, to its program",
  ),
  nestedCalls: limit(
    "calls within calls",
    64,
    "of one call and all below it: limit_exceeded, to the program that asks for more",
  ),
  nestedDenials: limit("calls within calls", 32, "further tools that were refused are not named"),
  driversOfACall: limit("retries", 3, "the failure of the last one is the call's"),
  paceWaitMs: limit(
    "the pace of a service",
    5_000,
    "a request whose turn is later is not waited for: rate_limited, with the time",
  ),
  paceMs: limit(
    "the pace of a service",
    3600 * 1000,
    "a service that asked to be left alone for longer is asked again",
  ),
  questions: limit("the questions of tools to people", 1000, "of a tenant, further ones are not asked: overloaded"),
  questionsOfOne: limit("the questions of tools to people", 100, "of one caller's that nobody answered yet: the same"),
  questionMs: limit(
    "a question of a tool to a person",
    24 * 3600 * 1000,
    "it is over, and is asked anew by the next call",
  ),
  requestChars: limit("a request for a person's yes", 64 * 1024, "nobody is asked: approval_required with `not_asked`"),
  questionChars: limit("a question of a tool to a person", 2_000, "the rest is cut off"),
  questionAnswerChars: limit("the answer to a question of a tool", 64 * 1024, "input_invalid"),
  lastWordMs: limit(
    "a conversation",
    2_000,
    "a program that is gone has answered what its streams still hold, or not at all",
  ),
  abortMs: limit("a conversation", 2_000, "a program that was asked to stop, because the call was cancelled, is ended"),
  goodbyeMs: limit("a conversation", 2_000, "a program that was answered and told that its input ends is ended"),
  mcpMessageBytes: limit("an MCP server's talk", 8 * MiB, "of one message: the server is left; limit_exceeded"),
  mcpBytes: limit("an MCP server's talk", 64 * MiB, "of all messages: the server is left; limit_exceeded"),
  mcpMessages: limit("an MCP server's talk", 50_000, "the server is left; limit_exceeded"),
  mcpOddLines: limit("an MCP server's talk", 1_000, "lines that are no messages: the server is left; limit_exceeded"),
  mcpDepth: limit("an MCP server's talk", 128, "a message nested deeper: the server is left; limit_exceeded"),
  mcpUnsentBytes: limit("an MCP server's talk", 32 * MiB, "the server does not read: it is left; limit_exceeded"),
  mcpPages: limit("an MCP server's talk", 64, "of its list of tools: upstream_error"),
  mcpChallengeChars: limit("an MCP server's refusal", 8_192, "the rest of what it says of the token is not read"),
  mcpScopes: limit("an MCP server's refusal", 64, "further scopes that it names are left out"),
  mcpRounds: limit("an MCP server's talk", 8, "questions for one call: upstream_error"),
  mcpProbeMs: limit(
    "an MCP server's talk",
    10_000,
    "a server that does not say which era it speaks is of the older one",
  ),
  mcpSilenceMs: limit(
    "an MCP server's talk",
    3600 * 1000,
    "a request without an answer: timeout; a call's own time ends before",
  ),
  mcpRetryMs: limit(
    "an MCP server's talk",
    100,
    "a connection that broke is made again after it, and after twice as long each time",
  ),
  mcpMessageChars: limit("an MCP server's talk", 1_000, "the rest of its words in an error is left out"),
  mcpUriChars: limit("an MCP server's talk", 4_096, "a longer address of a resource: output_parse_failed"),
  keptServers: limit("kept servers", 8, "that wait for a call: the one that waited longest is ended"),
  keptMemoryBytes: limit(
    "kept servers",
    8192 * MiB,
    "that those which wait may use, all together: the one that waited longest is ended",
  ),
  keptIdleMs: limit("kept servers", 300_000, "nobody called it for that long: it is ended"),
  keptLifeMs: limit("kept servers", 3600 * 1000, "the next call gets a new one"),
  keptWaiting: limit("kept servers", 16, "calls that wait for the same one: rate_limited"),
  keptUnheardBytes: limit("kept servers", MiB, "what it prints while nobody calls: it is ended"),
  keptWorkspaceEntries: limit(
    "kept servers",
    10_000,
    "nobody can tell soon enough whether a workspace with more is unchanged: the server is not kept",
  ),
  offerBytes: limit("the store", MiB / 4, "a longer offer is remembered by its digest alone"),
  judgeMs: limit("the judge", 60_000, "limit_exceeded, and nothing is committed"),
  receiptBytes: limit("the receipt", 3 * MiB, "the receipt keeps verdict, counts and digests alone"),
  receiptEffects: limit("the receipt", 20_000, "the rest is recorded as a count and a digest of the whole list"),
  receiptEffectBytes: limit("the receipt", 2 * MiB, "the rest is recorded as a count and a digest of the whole list"),
  receiptHomeBytes: limit(
    "the receipt",
    MiB / 8,
    "the rest of what a driver's home kept is recorded as a count and a digest of the whole list",
  ),
  unreachable: limit("the call", 20, "details.unreachable names no more hosts"),
  receiptFileBytes: limit(
    "the receipt",
    MiB / 4,
    "the rest of a contract's files is recorded as a count and a digest of the whole list",
  ),
  receiptDenialBytes: limit("the receipt", MiB / 8, "the rest is recorded as a count and a digest of the whole list"),
  receiptReachedBytes: limit("the receipt", MiB / 16, "the rest is recorded as a count and a digest of the whole list"),
  receiptPrograms: limit("the receipt", 64, "the rest of the programs that may be started is recorded as a count"),
  receiptBundleFiles: limit("the receipt", 20_000, "a driver's folder with more files is recorded without a digest"),
  receiptDigestBytes: limit(
    "the receipt",
    2048 * MiB,
    "programs and a driver's files beyond it, not read before, are recorded by their size",
  ),
  receiptKeys: limit("the receipt", 256, "the rest of the input's keys is recorded as a count"),
  receiptValueBytes: limit("the receipt", MiB / 16, "route, templates or scopes are recorded as a digest"),
  errorOutputBytes: limit("the output reader", 4_096, "details.stderr keeps the end of the stream"),
  auditLockMs: limit("the audit log", 30_000, "the append fails; the call ends internal"),
  auditGroup: limit("the audit log", 32, "further entries are appended with the next"),
  auditSegmentBytes: limit("the audit log", 64 * MiB, "the log is closed as a part, and the chain goes on in another"),
  auditReserveBytes: limit(
    "the audit log",
    4 * MiB,
    "given back to the disk when it is full, so that receipts can still be written",
  ),
  configBytes: limit("the config loader", 256 * 1024, "the host does not start"),
  knownManifests: limit("the data folder", 8, "the oldest set of loaded manifests is forgotten"),
  knownManifestBytes: limit("the data folder", 32 * MiB, "the set is loaded anew at every start"),
  approvalMs: limit("approve", 600_000, "nobody answered: approval_required, and nothing is committed"),
  holdMs: limit("held calls", 24 * 3600 * 1000, "the held call is thrown away; `approvals.hold_ms` sets another time"),
  holdCount: limit(
    "held calls",
    100,
    "the next call is not held: approval_required, and its effects are gone; `approvals.hold_count` sets another number",
  ),
  holdBytes: limit(
    "held calls",
    2048 * MiB,
    "the next call is not held: approval_required, and its effects are gone; `approvals.hold_mb` sets another size",
  ),
  holdCheckMs: limit("held calls", 3600 * 1000, "a host that holds calls looks for those whose time is over"),
  eventQueue: limit("a call's observer", 1_024, "the oldest output waiting is dropped, and the next says how much"),
  eventDenials: limit("a call's observer", 100, "the rest of the denials is in the envelope alone"),
  eventOutputBytes: limit("a call's observer", MiB, "output waiting to be told is dropped, and the next says how much"),
  storeWaitMs: limit(
    "the store",
    10_000,
    "another process kept it that long: the call is not held, or the decision not made",
  ),
  receiptsTold: limit("questions about receipts", 200, "a page has no more; its cursor tells where the next begins"),
  receiptsPageBytes: limit("questions about receipts", 8 * MiB, "a page ends before the entry that would go beyond it"),
  indexedAtOnceBytes: limit("questions about receipts", MiB / 2, "of the log: other work has its turn"),
  indexWaitMs: limit(
    "questions about receipts",
    5_000,
    "the log is still being indexed: overloaded, and the next question finds more done",
  ),
  unkeptCalls: limit("calls on record", 256, "a further call that the store cannot keep is as if its process had died"),
  keepAgainMs: limit("calls on record", 2_000, "so often what the store could not keep is tried again"),
  storeGroup: limit("the store on SQLite", 128, "further changes wait for the next commit"),
  postgresConnections: limit("the store on PostgreSQL", 8, "further verbs wait for a session"),
  postgresConnectMs: limit("the store on PostgreSQL", 3_000, "it is tried again until storeWaitMs is over"),
  postgresStatementMs: limit("the store on PostgreSQL", 5_000, "the statement, or its wait for a lock, is given up"),
  postgresIdleMs: limit("the store on PostgreSQL", 30_000, "a session that nobody used is closed"),
  postgresUrlBytes: limit("the file of a store's URL", 4_096, "the host does not start"),
  settledCalls: limit("the store", 1_000, "the oldest held call that was decided is forgotten; its receipts stay"),
  diffFileBytes: limit("diffs", MiB / 4, "a larger file is told by its size alone"),
  diffBytes: limit("diffs", 4 * MiB, "of all files of a call: the rest are told by name alone"),
  diffFiles: limit("diffs", 500, "the rest are told by name alone"),
  diffLines: limit("diffs", 400, "of one file: the rest is a count"),
  diffEdits: limit("diffs", 2_000, "a file with more of them is told whole, as it was and as it is"),
  diffMs: limit("diffs", 500, "the same"),
  callRecordMs: limit("the record of calls", 24 * 3600 * 1000, "what a call without a key answered is forgotten"),
  keyedCallMs: limit("the record of calls", 8 * 24 * 3600 * 1000, "a key is forgotten, and stands for a new call then"),
  callsTold: limit("the record of calls", 200, "a list has no more"),
  grantDays: limit("grants", 366, "input_invalid: no grant lasts longer"),
  grantUses: limit("one grant", 10_000, "input_invalid: no grant has more uses"),
  grants: limit("the grants of a tenant", 1_000, "that are good: no further one is made"),
  grantKeepMs: limit("a grant that ended", 30 * 24 * 3600 * 1000, "it is forgotten; receipts that name it stay"),
  reasonChars: limit("a person's reason", 500, "input_invalid"),
  tokenDays: limit("tokens", 366, "input_invalid: no token lasts longer"),
  routeRows: limit("a refused route", 100, "the rest of the drivers is a count in details.more"),
  unsentBytes: limit("the proxy's sockets", MiB / 8, "what the kernel could not send yet; the proxy reads no more"),
  clientBytes: limit("the proxy's sockets", MiB / 4, "what a client sent ahead; the kernel takes no more from it"),
  closeMs: limit("host.close", 10_000, "calls still running are cancelled"),
}) satisfies Record<string, HostLimit>

export const questionBounds = { count: hostLimits.questions.value, ofOne: hostLimits.questionsOfOne.value }

/** What the vault holds. */
export const vaultLimits = Object.freeze({
  valueBytes: limit("one secret", 64 * 1024, "input_invalid: it is not kept"),
  entries: limit("the vault", 2_000, "input_invalid: no further secret is kept"),
  fileBytes: limit("the vault's file", 64 * MiB, "the vault is not opened"),
  keyBytes: limit("the vault's key", 4096, "the vault is not opened"),
  tokenTurnMs: limit(
    "captured tokens",
    60_000,
    "others use or keep them for that long: `token_answer`, nothing passes",
  ),
  lockMs: limit("the vault", 30_000, "another process writes it for that long: internal"),
}) satisfies Record<string, HostLimit>

/** What lies encrypted of drivers' own state. What a home may hold is in the sandbox's limits. */
export const homeLimits = Object.freeze({
  fileBytes: limit("one home's file", 96 * MiB, "the home is not opened: internal"),
  lockMs: limit("one home", 30_000, "others write it for that long: the state is not kept"),
}) satisfies Record<string, HostLimit>

/** What a login's provider may take. */
export const loginWebLimits = Object.freeze({
  answerBytes: limit("one answer of a provider", 1 * MiB, "the login ends: the provider could not be asked"),
  scopes: limit("one login", 64, "further scopes are not asked for"),
  servers: limit("one resource's metadata", 16, "further authorization servers that it names are not looked at"),
}) satisfies Record<string, HostLimit>

/** What a vault on another server may take. */
export const kvLimits = Object.freeze({
  answerMs: limit("one request to the vault", 10_000, "internal: it did not answer"),
  answerBytes: limit("one answer of the vault", 4 * MiB, "internal: it did not answer"),
  connections: limit("the vault's client", 4, "further requests wait"),
  tokenBytes: limit("the file of a token", 4096, "internal: this host cannot sign in"),
  folders: limit("the vault's names", 2_000, "internal: names are not read beyond"),
  writes: limit("one secret, written by several at once", 5, "internal: it is not kept"),
  namesMs: limit("the vault's names", 5_000, "they are read again"),
}) satisfies Record<string, HostLimit>

/** What the installation of one set of packages may use. */
export const installLimits = Object.freeze({
  wallMs: limit("the builder", 600_000, "the build is ended; install_failed"),
  memoryBytes: limit("the builder", 2048 * MiB, "the build is ended; install_failed"),
  pids: limit("the builder", 256, "fork fails with EAGAIN"),
  diskBytes: limit("the builder", 2048 * MiB, "what is fetched and unpacked, together: install_failed"),
  outputBytes: limit("the builder", 4 * MiB, "the build is ended; install_failed"),
  openFiles: limit("the builder", 4096, "open fails with EMFILE"),
  layerBytes: limit("a frozen layer", 1024 * MiB, "install_failed"),
  layerFiles: limit("a frozen layer", 60_000, "files, folders and links: install_failed"),
  layerDepth: limit("a frozen layer", 64, "folders within folders: install_failed"),
  packages: limit("one request", 64, "tool_unavailable"),
  inUseMs: limit("a frozen layer", 3600 * 1000, "since it was used or made last: it is not pruned before"),
  stallMs: limit("a download", 30_000, "silence: it is asked for again from where it stands, then install_failed"),
  downloadMs: limit("a download", 1_800_000, "all attempts together: install_failed; what came is kept for the next"),
  downloadBytes: limit("a download", 1024 * MiB, "install_failed"),
  downloadAttempts: limit("a download", 5, "so many that bring nothing new: install_failed"),
  redirects: limit("a download", 5, "install_failed"),
  scriptBytes: limit("a script of `curl`", 4 * MiB, "install_failed"),
  methods: limit("one driver", 16, "install methods beyond are not tried"),
  lockMs: limit("one request", 900_000, "another process installs the same for that long: install_failed"),
}) satisfies Record<string, HostLimit>

/** What a driver may be composed of (AIP-26). */
export const codeLimits = Object.freeze({
  files: limit("a composed driver", 5_000, "tool_unavailable, with the reason"),
  bytes: limit("a composed driver", 64 * MiB, "tool_unavailable, with the reason"),
  depth: limit("a composed driver", 32, "folders within folders: tool_unavailable, with the reason"),
  globStars: limit("a composed driver", 8, "stars of one pattern: tool_unavailable, with the reason"),
}) satisfies Record<string, HostLimit>
