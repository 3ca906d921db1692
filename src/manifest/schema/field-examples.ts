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
}

const kinds: Readonly<Record<string, string>> = {
  object: "{ key: value }",
  array: "[one, two]",
  string: "text",
  integer: "1",
  number: "0.5",
  boolean: "true",
}

/** `, as in …` for the field at the end of this path; empty where nothing is known of it. */
export const asIn = (path: string, type?: unknown): string => {
  const key =
    path
      .replace(/\[\d+\]$/, "")
      .split(".")
      .at(-1) ?? ""
  const inList = path.endsWith("]")
  const known = !inList && Object.hasOwn(examples, key) ? examples[key] : undefined
  if (known !== undefined) return `, as in \`${known}\``
  const plain = typeof type === "string" && Object.hasOwn(kinds, type) ? kinds[type] : undefined
  return plain === undefined ? "" : `, as in \`${inList || key === "" ? plain : `${key}: ${plain}`}\``
}
