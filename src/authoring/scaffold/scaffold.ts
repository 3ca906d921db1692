/**
 * Answers → the files of a tool and its driver: a TOOL.md, a DRIVER.md and, where it has one, what they run.
 *
 * Guarantees: pure; the narrowest that the answers ask for: no network, writes or programs but those that were named. Paths
 * are relative to the folder of the new tool.
 */
import type { JsonObject } from "../../manifest/base-types.ts"
import { manifestText } from "../text/front.ts"
import { inputsOf, type ScaffoldAnswers, type ScaffoldInput } from "./answers.ts"
import { contractOf, type ContractParts } from "./contract.ts"
import { embedder, greeter, nodeModule, pythonModule, pythonServer } from "./programs.ts"

export interface ScaffoldFile {
  readonly path: string
  readonly text: string
  /** what is written, of a file that is no text; `text` then says so */
  readonly bytes?: Uint8Array
  readonly executable?: true
}

interface Kind {
  /** the inputs where nobody named any */
  readonly inputs: readonly ScaffoldInput[]
  readonly contract: ContractParts
  /** of the driver, behind what every driver has */
  readonly front: JsonObject
  readonly binding: JsonObject
  readonly files: readonly ScaffoldFile[]
  readonly about: string
}

const text: JsonObject = { type: "string" }
const greeting: readonly ScaffoldInput[] = [{ name: "name", type: "text" }]
const greets = (output: string): ContractParts => ({
  outputs: text,
  examples: [{ name: "a greeting", input: { name: "Ada" }, output }],
})

const sandboxOf = ({ write, hosts, spawn }: ScaffoldAnswers): JsonObject => ({
  network: { egress: [...hosts], ingress: [] },
  fs: { read: ["**"], write: [...write], deny: [] },
  exec: spawn.length === 0 ? { allow: false } : { allow: true, spawn: [...spawn] },
  env: { pass: [], set: { LC_ALL: "C.UTF-8" } },
})

const cli = (answers: ScaffoldAnswers, given: readonly ScaffoldInput[]): Kind => {
  const [bin, ...args] = answers.command
  const own = bin === undefined
  const name = own ? answers.driver : bin
  const inputs = own && given.length === 0 ? greeting : given
  const version = own ? `${answers.driver} (\\d+\\.\\d+\\.\\d+)` : "(\\d+\\.\\d+(?:\\.\\d+)?)"
  return {
    inputs,
    contract: own && given.length === 0 ? greets("Hello, Ada.\n") : { outputs: answers.output === "json" ? {} : text },
    front: {
      bin: name,
      ...(own ? { install: [{ method: "vendored", path: `bin/${name}` }] } : {}),
      version_check: { cmd: `${name} --version`, parse: version, range: own ? "^1.0.0" : "*" },
      sandbox: sandboxOf(answers),
      output: { default_format: answers.output, stream: "stdout", error_stream: "stderr" },
    },
    binding: {
      cli: {
        argv: own ? ["--", ...inputs.map((input) => `\${input.${input.name}}`)] : args,
        output_format: answers.output,
      },
    },
    files: own ? [{ path: `bin/${name}`, text: greeter(name), executable: true }] : [],
    about: own
      ? `\`bin/${name}\` is the program; it sees the workspace and nothing else of this machine.`
      : "Narrow `version_check.range` to the versions that were tried.",
  }
}

const http = (answers: ScaffoldAnswers, given: readonly ScaffoldInput[]): Kind => {
  const { origin, rest } = splitUrl(answers.url ?? "")
  const method = answers.method ?? "GET"
  return {
    inputs: given,
    contract: {
      outputs: answers.output === "text" ? text : {},
      ...(method === "GET" ? {} : { external: new URL(origin).hostname }),
    },
    front: { base_url: origin, default_method: method, network: { egress: [...answers.hosts] } },
    binding: { http: { endpoint: rest, method } },
    files: [],
    about: "The host itself asks the service; no program is started.",
  }
}

/** `https://host:port` and what is behind it. */
const splitUrl = (url: string): { readonly origin: string; readonly rest: string } => {
  const slash = url.indexOf("/", url.indexOf("://") + 3)
  return slash === -1 ? { origin: url, rest: "/" } : { origin: url.slice(0, slash), rest: url.slice(slash) }
}

/** `host:port` of an address. */
export const hostOfUrl = (url: string): string => {
  const { hostname, port, protocol } = new URL(splitUrl(url).origin)
  return `${hostname}:${port === "" ? (protocol === "https:" ? "443" : "80") : port}`
}

const sdk = (answers: ScaffoldAnswers, given: readonly ScaffoldInput[]): Kind => {
  const python = answers.language === "python"
  const file = python ? "tool.py" : "tool.mjs"
  const inputs = given.length === 0 ? greeting : given
  const names = inputs.map(({ name }) => name)
  return {
    inputs,
    contract: given.length === 0 ? greets("Hello, Ada.") : { outputs: answers.output === "json" ? {} : text },
    front: {
      package: file,
      package_manager: "local",
      import_style: python ? "python" : "esm",
      network: { egress: [...answers.hosts] },
    },
    binding: {
      sdk: { function_ref: "run", args_template: Object.fromEntries(names.map((n) => [n, `\${input.${n}}`])) },
    },
    files: [{ path: file, text: python ? pythonModule(names) : nodeModule(names) }],
    about: `\`run\` in \`${file}\` is the tool; each call imports it in a sandbox of its own.`,
  }
}

const mcp = (answers: ScaffoldAnswers, given: readonly ScaffoldInput[]): Kind => {
  const { url, package: pack, serverTool = "greet" } = answers
  const own = url === undefined && pack === undefined
  const inputs = own && given.length === 0 ? greeting : given
  const narrow = { fs: { read: ["**"], write: [...answers.write], deny: [] }, exec: { allow: false } }
  return {
    inputs,
    contract: own && given.length === 0 ? greets("Hello, Ada.") : { outputs: answers.output === "json" ? {} : text },
    front: {
      server:
        url !== undefined
          ? { kind: "remote", url }
          : pack !== undefined
            ? { kind: "npm", package: pack }
            : { kind: "binary", path: "./server.py" },
      transport: url === undefined ? "stdio" : "http",
      ...(own ? { protocol_version: "2025-11-25" } : {}),
      network: { egress: [...answers.hosts] },
      ...(url === undefined ? { sandbox: narrow } : {}),
    },
    binding: { mcp: { tool_name: serverTool } },
    files: own
      ? [
          {
            path: "server.py",
            text: pythonServer(
              serverTool,
              inputs.map(({ name }) => name),
            ),
            executable: true,
          },
        ]
      : [],
    about: "`caisson review` shows what the server says of its tool, and what of that changed.",
  }
}

const builtin = (answers: ScaffoldAnswers, given: readonly ScaffoldInput[]): Kind => {
  const inputs = given.length === 0 ? greeting : given
  return {
    inputs,
    contract: given.length === 0 ? greets("Hello, Ada.") : { outputs: answers.output === "json" ? {} : text },
    front: {},
    binding: { builtin: { host_id: answers.tool } },
    files: [
      {
        path: "embed.mjs",
        text: embedder(
          answers.tool,
          inputs.map(({ name }) => name),
        ),
      },
    ],
    about:
      "The function is the program's that embeds the host: see `embed.mjs`. It runs unsealed, and its receipts say so.",
  }
}

const kinds = { cli, http, sdk, mcp, builtin }

/** What is asked for, with the host of an address among its hosts. */
const settled = (answers: ScaffoldAnswers): ScaffoldAnswers => {
  if (answers.url === undefined) return answers
  return { ...answers, hosts: [...new Set([hostOfUrl(answers.url), ...answers.hosts])] }
}

interface Scaffold {
  readonly tool: JsonObject
  readonly driver: JsonObject
  /** what stands below the driver's front matter */
  readonly about: string
  readonly files: readonly ScaffoldFile[]
}

/** Of answers without faults, as data. */
export const scaffoldOf = (given: ScaffoldAnswers): Scaffold => {
  const answers = settled(given)
  const { kind, driver, description } = answers
  const { inputs, contract, front, binding, files, about } = kinds[kind](answers, inputsOf(answers))
  return {
    tool: contractOf(answers, inputs, contract),
    driver: {
      name: driver,
      id: driver,
      description,
      version: "1.0.0",
      kind,
      ...front,
      implements: [{ tool: "./TOOL.md", version: "^1.0.0", metadata: binding }],
    },
    about,
    files,
  }
}

/** The same, as files. */
export const scaffold = (answers: ScaffoldAnswers): readonly ScaffoldFile[] => {
  const { tool, driver, about, files } = scaffoldOf(answers)
  return [
    { path: "TOOL.md", text: manifestText(tool, `What ${answers.tool} promises.`) },
    { path: "DRIVER.md", text: manifestText(driver, about) },
    ...files,
  ]
}
