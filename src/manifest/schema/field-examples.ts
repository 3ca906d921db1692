/** What a field of a manifest looks like when it is right, for the fix of one that is missing or of another type. */
const examples: Readonly<Record<string, string>> = {
  name: "name: Append a note",
  id: "id: notes-append",
  slug: "slug: api-key",
  description: "description: Appends a line to a note in the workspace.",
  version: "version: 1.0.0",
  inputs: "inputs: { type: object, required: [text], properties: { text: { type: string } } }",
  outputs: "outputs: { type: string }",
  mutates: 'mutates: ["workspace:/notes/**"]',
  approval: "approval: on-mutate",
  examples: "examples: [{ name: one, input: { text: hello } }]",
  requires: "requires: { os: [linux] }",
  kind: "kind: cli",
  bin: "bin: jq",
  implements:
    'implements: [{ tool: notes.append, version: ^1.0.0, metadata: { cli: { argv: ["--", "${input.text}"] } } }]',
  tool: "tool: ./tools/notes.append/TOOL.md",
  argv: 'argv: ["--", "${input.text}"]',
  install: "install: [{ method: apt, package: jq }]",
  method: "method: apt",
  package: "package: jq",
  package_manager: "package_manager: npm",
  version_check: "version_check: { cmd: jq --version, parse: 'jq-(\\d+\\.\\d+)', range: '>=1.6' }",
  cmd: "cmd: jq --version",
  parse: "parse: 'jq-(\\d+\\.\\d+)'",
  range: "range: '>=1.6'",
  sandbox:
    'sandbox: { network: { egress: [] }, fs: { read: ["**"], write: [] }, exec: { allow: false }, env: { pass: [] } }',
  network: "network: { egress: [api.example.com] }",
  egress: "egress: [api.example.com]",
  fs: 'fs: { read: ["**"], write: ["notes/**"] }',
  read: 'read: ["**"]',
  write: 'write: ["notes/**"]',
  deny: 'deny: [".env"]',
  exec: "exec: { allow: false }",
  spawn: "spawn: [git]",
  env: "env: { pass: [LANG] }",
  pass: "pass: [LANG]",
  commands: "commands: { list: ./tools/list/TOOL.md }",
  base_url: "base_url: https://api.example.com/v1",
  server: "server: { kind: npm, package: '@acme/server' }",
  transport: "transport: stdio",
  function_ref: "function_ref: Client.images.create",
  tool_name: "tool_name: read_file",
  endpoint: "endpoint: /images",
  secrets: "secrets: [{ slug: api-key, name: API key, description: For the images API. }]",
  schema: "schema: action/v1",
  decision: "decision: require-approval",
  match: "match: { action: notes.* }",
  tags: "tags: [notes]",
  timeout_ms: "timeout_ms: 30000",
  metadata: "metadata: { cli: { argv: [list] } }",
  ref: "ref: ./AUTH.md",
  file: "file: ./RUNNER.md",
  inline: "inline: { id: notes.append }",
  input: "input: { text: hello }",
  path: "path: bin/notes",
  goal: "goal: append a line to today's note",
  from: "from: text",
  url: "url: https://api.example.com/health",
  detect: "detect: exit_code:4",
  allow: "allow: false",
  prompt: "prompt: Which account?",
  secret_slug: "secret_slug: api-key",
  extract_bin: "extract_bin: bin/notes",
  max_attempts: "max_attempts: 3",
  backoff: "backoff: exponential",
  image: "image: 'sha256:" + "0".repeat(64) + "'",
  mcp: "mcp: { tool_name: read_file }",
  sdk: "sdk: { function_ref: run }",
  mode: "mode: async-iterator",
  doctype: "doctype: policy",
  action: "action: notes.append",
  actions: "actions: [{ action: notes.append }]",
  signers: "signers: [{ userId: ana }]",
  value: "value: ana",
  principal: "principal: user://ana",
  provider: "provider: namespace",
  config: "config: { network: none }",
  source: "source: { ref: data }",
  at: "at: /data",
  apiBase: "apiBase: https://api.example.com",
  auth: "auth: { flow: device-code, tokenStore: { keychain: acme } }",
  flow: "flow: device-code",
  tokenStore: "tokenStore: { keychain: acme }",
  keychain: "keychain: acme",
  sealKey: "sealKey: api-key",
  secretBacked: "secretBacked: api-key",
}

const kinds: Readonly<Record<string, string>> = {
  object: "{ key: value }",
  array: "[one, two]",
  string: "text",
  integer: "1",
  number: "0.5",
  boolean: "true",
}

/** Of a field's schema, what an example is made of. */
export interface FieldShape {
  readonly type?: unknown
  readonly const?: unknown
  readonly enum?: readonly unknown[]
  readonly examples?: readonly unknown[]
  readonly required?: readonly string[]
  readonly properties?: Readonly<Record<string, FieldShape>>
}

/** `key: value` as the schema of the field alone gives it: one of few words, what a block needs, a number. */
const ofShape = (key: string, shape: FieldShape): string => {
  const { type, const: only, enum: words, examples: own, required, properties = {} } = shape
  const [choice] = only === undefined ? (words ?? own ?? []) : [only]
  if (typeof choice === "string") return `${key}: ${choice}`
  const inside = (required ?? []).map((name) =>
    properties[name] === undefined ? "" : exampleOf(name, properties[name]),
  )
  if (inside.length > 0 && !inside.includes("")) return `${key}: { ${inside.join(", ")} }`
  return type === "number" ? `${key}: ${kinds["number"]}` : ""
}

const exampleOf = (key: string, shape: FieldShape = {}): string =>
  ofShape(key, shape) || (Object.hasOwn(examples, key) ? (examples[key] ?? "") : "")

/** `, as in …` for the field at the end of this path; empty where nothing is known of it. */
export const asIn = (path: string, type?: unknown, shape?: FieldShape): string => {
  const key =
    path
      .replace(/\[\d+\]$/, "")
      .split(".")
      .at(-1) ?? ""
  const inList = path.endsWith("]")
  const known = inList || key === "" ? "" : exampleOf(key, shape)
  if (known !== "") return `, as in \`${known}\``
  const plain = typeof type === "string" && Object.hasOwn(kinds, type) ? kinds[type] : undefined
  return plain === undefined ? "" : `, as in \`${inList || key === "" ? plain : `${key}: ${plain}`}\``
}
