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
  secrets: "the vault: secrets by name, never by value",
  secretsSet: "keep a secret; its value is typed at a prompt, or read from stdin",
  secretsList: "names, and whose they are",
  secretsRm: "forget a secret",
  secretsRotate: "new keys for the vault",
  review: "what the server behind a driver says of its tools, beside what was accepted; accept what changed",
  validate: "check manifests; every message names file, field path and fix",
  doctor: "which controls are enforced here, proven by a canary each, and what to do about the rest",
  approvals: "the calls that ran and whose effects wait for an answer; show, approve or deny one",
  approvalsShow: "every effect of one, deletions first",
  approvalsApprove: "commit exactly what was held; a conflict where the workspace changed underneath",
  approvalsDeny: "throw what was held away",
  receipts: "the receipts of the calls made on this data folder",
  verify: "recompute the chain of receipts and name the first bad line; an absent chain is a finding",
  egressProxy: "the egress proxy on its own",
} as const

export const options = {
  input: "the tool's input: JSON, @FILE, or - for stdin (default: {})",
  workspace: "the folder presented at /workspace",
  user: "whose login state and grants apply (default: the OS user)",
  manifests: "one more folder with manifests (repeatable); the bundled catalogue is always there",
  backend: "namespace | docker (default: that of caisson.yaml, else namespace)",
  driver: "pin a driver",
  context: "per-call context as JSON",
  plan: "run, show the effects, commit nothing",
  yes: "approve what this call asks approval for",
  json: "JSON alone on stdout (the default when stdout is no terminal)",
  accept: "the digest of what changed: calls of it are let through from now on",
  strict: "refuse what the compat mode lets pass with a warning",
  secretUser: "whose secret it is (default: the OS user)",
  shared: "a secret for every user",
  onlyWorkspace: "only for calls on this folder",
  onlyDriver: "only for this driver",
  oldKey: "the file with the key that the vault is under, where CAISSON_KEY_FILE names a new one",
  call: "only the receipt of this call",
  key: "the public key that must have signed the head: PEM, or a copy of governance-keys.json",
  head: "the hash of a receipt that the chain must hold",
  policy: "YAML or JSON file: egress, services, private, budgets",
  listen: "HOST:PORT, PORT (on 127.0.0.1), or unix:PATH",
} as const

export const exitCodes = `Exit codes:
  0  ok
  1  the tool failed
  2  invalid input, manifest or usage
  3  refused: policy or contract violated; for verify: the receipts were tampered with, or are gone
  4  a person must act: login, setup, approval
  5  the host cannot enforce or is broken (nothing was run, or nothing was committed)`

export const says = {
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
