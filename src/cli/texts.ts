/** Every fixed word the command line says, in one place. Reason messages and hints live in src/host/reasons.ts. */

export const about =
  "The sealed execution host for agent tools: one tool call, enforced by the operating system, " +
  "judged against its contract, settled or undone."

export const commands = {
  call: "run one tool call, sealed",
  tools: "the tools that are registered, with availability and the reason when not; one in full where it is named",
  drivers: "the drivers that are registered, with availability and the reason when not; one in full where it is named",
  why: "which driver would serve the call, why each other was dropped, and the sealed profile it would get",
  install: "a driver's packages, installed in a sandbox and frozen, and its version checked",
  prune: "remove installed packages that no registered driver asks for, and that were not used for an hour",
  login: "set a driver up and log in, in the sandbox, for one workspace and user",
  logout: "end a login: what it left is wiped",
  auth: "where logins stand: state, account, expiry, next step",
  secrets: "the vault: secrets by name, never by value",
  secretsSet: "keep a secret; its value is typed at a prompt, or read from stdin",
  secretsList: "names, and whose they are",
  secretsRm: "forget a secret",
  secretsRotate: "new keys for the vault",
  review: "what the server behind a driver says of its tools, beside what was accepted; accept what changed",
  validate: "check manifests; every message names file, field path and fix",
  doctor: "which controls are enforced here, proven by a canary each, and what to do about the rest",
  serve: "the daemon: the HTTP API on a Unix socket in the data folder and on 127.0.0.1:7433",
  mcp: "the catalogue as an MCP server on stdin and stdout",
  tokens: "who may use the daemon's API",
  tokensCreate: "a new token; told once, on stdout",
  tokensList: "tokens, without what they open with",
  tokensRevoke: "a token that opens nothing from now on",
  grants: "a yes beforehand: this tool, on this workspace, so many times, until then",
  grantsCreate: "give one; a call that it covers asks nobody",
  grantsList: "grants, with what is left of them",
  grantsRevoke: "a grant that answers nothing from now on",
  approvals: "the calls that ran and whose effects wait for an answer; show, approve or deny one",
  approvalsShow: "every effect of one, deletions first",
  approvalsApprove: "commit exactly what was held; a conflict where the workspace changed underneath",
  approvalsDeny: "throw what was held away",
  receipts: "the receipts of the calls made on this data folder; an absent chain is a finding",
  receiptsExport: "the log, a line an entry, on stdout; with filters, the entries that fit",
  verify: "recompute the chain of receipts and name the first bad line; an absent chain is a finding",
  egressProxy: "the egress proxy on its own",
  completion: "a script that lets bash, zsh or fish complete caisson's words; `man`: the manual page",
} as const

export const options = {
  input: "the tool's input: JSON, @FILE, or - for stdin (default: {})",
  workspace: "the folder presented at /workspace",
  user: "whose login state and grants apply (default: the OS user)",
  manifests: "one more folder with manifests (repeatable); the bundled catalogue is always there",
  backend: "namespace | docker (default: that of caisson.yaml, else namespace)",
  wait: "wait for the workspace instead of failing on a conflict with other calls (default: 600 seconds; at most 3600)",
  listenOn:
    "HOST:PORT, or none for the Unix socket alone (default: `serve.listen` of caisson.yaml, else 127.0.0.1:7433)",
  tag: "only tools with this tag (repeatable)",
  find: "three tools that find, describe and call the others, in place of all of them",
  tokenUser: "whom the token stands for (default: the OS user)",
  tenant: "whose data it is about (default: this host's own)",
  label: "what it is for, in words",
  person: "for a person: it may approve; without this it is for an agent, and never can",
  tokenWorkspace: "a folder that it may be used on (repeatable)",
  anyWorkspace: "it may be used on any folder",
  role: "caller, approver, operator, act-for or pin (repeatable; default: caller, for a person approver too)",
  days: "how many days it is good for (default: 366)",
  grantTool: "the tool that it is for: ID, or ID@MAJOR",
  grantUser: "for whose calls (default: the OS user)",
  grantWorkspace: "the folder that the calls are on",
  grantAny: "calls on any folder",
  uses: "how many calls (default: 1)",
  until: "when it ends: 2027-01-31, or 2027-01-31T18:00:00Z",
  grantDays: "how many days it lasts (default: 1)",
  reason: "why, in words, for whoever reads the evidence",
  driver: "pin a driver",
  context: "per-call context as JSON",
  plan: "run, show the effects, commit nothing",
  yes: "approve what this call asks approval for",
  json: "JSON alone on stdout (the default when stdout is no terminal)",
  accept: "the digest of what changed: calls of it are let through from now on",
  strict: "refuse what the compat mode lets pass with a warning",
  headless: "print each step as a line of JSON, and read answers as lines of JSON from stdin",
  loginWait: "wait for another login of the same that is under way",
  secretUser: "whose secret it is (default: the OS user)",
  shared: "a secret for every user",
  onlyWorkspace: "only for calls on this folder",
  onlyDriver: "only for this driver",
  oldKey: "the file with the key that the vault is under, where CAISSON_KEY_FILE names a new one",
  call: "only the receipt of this call",
  ofTool: "only of this tool: ID@MAJOR, or ID",
  ofUser: "only of calls of this user",
  verdict: "only with this verdict: ok, or the code of a reason",
  since: "only from this day or date-time on",
  entriesUntil: "only before this day or date-time",
  wrote: "only what was committed at this path or below it",
  reachedHost: "only what reached HOST or HOST:PORT",
  denied: "only where something was denied, or the call itself was",
  limit: "only the last so many",
  key: "the public key that must have signed the head: PEM, or a copy of governance-keys.json",
  head: "the hash of a receipt that the chain must hold",
  policy: "YAML or JSON file: egress, services, private, budgets",
  listen: "HOST:PORT, PORT (on 127.0.0.1), or unix:PATH",
} as const

export const exitCodes = `Exit codes:
  0  ok
  1  the tool failed
  2  invalid input, manifest or usage
  3  refused: policy or contract violated; for verify and receipts: they were tampered with, or are gone
  4  a person must act: login, setup, approval
  5  the host cannot enforce or is broken (nothing was run, or nothing was committed)`

/** What the manual page says of files; a line each. */
export const manFiles = [
  "$CAISSON_DATA, else ~/.caisson: receipts, keys, homes of drivers, held layers",
  "caisson.yaml in there: the operator's settings",
  "NO_COLOR: no colours; CAISSON_DEBUG: stack traces of failures that nobody foresaw",
] as const

export const says = {
  closing: "letting calls settle; press again to end at once",
  toldOnce: "a token, told this once",
  noTokens: "no tokens yet; `caisson tokens create` makes one",
  noGrants: "no grants; `caisson grants create` gives one",
  cancelling: "cancelling; press again to end at once",
  noEffects: "no effects on the workspace",
  planned: "plan: nothing was committed",
  noReceipts: "no receipts yet",
  noneHeld: "no call waits for an answer",
  damaged: (id: string, expires: string) =>
    `what was remembered of the held call ${id} is damaged, and it cannot be approved: \`caisson approvals deny ${id}\` throws it away, and so does its time (${expires})`,
  notIntact: "what lies on disk is not what was held: it cannot be shown, nor approved",
  nothingReviewed: "nothing of this driver was looked at yet: a server is, when its driver is first needed",
  nothingToInstall: "nothing had to be installed",
  noLogins: "no registered driver needs a login or a set-up",
  setUpAgain: "the npm packages are not those of this version: `npm start -- --once` in its folder sets it up anew",
  noSecrets: "the vault holds no secrets",
  listsSecrets: "`caisson secrets list` lists them with whose they are",
  rotated: "the vault is under new keys",
  noManifests: "no manifests found",
  working: "working",
  runThis: "Run it?",
  moreHelp: "`caisson --help` lists the commands",
  listsTools: "`caisson tools` lists the tools",
  keepThese: "Keep these changes?",
} as const
