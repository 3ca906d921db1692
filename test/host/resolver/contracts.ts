/** Frozen contracts for tests, made by hand so that each test names only what it is about. */
import {
  type DriverBody,
  type DriverContract,
  type DriverKind,
  type Implementation,
  type ToolContract,
} from "../../../src/manifest/types.ts"
import type { RegisteredDriver } from "../../../src/host/registry/types.ts"

const source = (file: string) => ({ file, mode: "strict", digest: `sha256:${"0".repeat(64)}`, leniencies: [] }) as const

export const toolOf = (over: Partial<ToolContract> = {}): ToolContract => ({
  kind: "tool",
  id: "image.create",
  name: "Create an image",
  description: "Makes an image from a text",
  version: "1.0.0",
  major: 1,
  inputs: {
    type: "object",
    required: ["prompt"],
    additionalProperties: false,
    properties: {
      prompt: { type: "string" },
      aspect: { type: "string" },
      seed: { type: "integer" },
      negative_prompt: { type: "string" },
    },
  },
  outputs: { type: "object" },
  idempotent: false,
  mutates: [],
  requires: { secrets: [], tools: [] },
  approval: { class: "auto" },
  riskLevel: 0,
  costClass: "metered",
  timeoutMs: 30_000,
  driverConstraints: { forbid: [], requireKind: [] },
  tags: [],
  examples: [],
  metadata: {},
  source: source("/catalogue/image/TOOL.md"),
  ...over,
})

export const entryOf = (over: Partial<Implementation> = {}): Implementation => ({
  toolRef: "image.create",
  tool: "image.create",
  versionRange: "^1.0.0",
  dropInputs: [],
  dropOutputs: [],
  mapping: {},
  http: {
    endpoint: { text: "/x", parts: [{ type: "literal", text: "/x" }] },
    method: "POST",
    headers: [],
    query: [],
    extract: [],
  },
  metadata: {},
  ...over,
})

/** What a driver of this kind is made of, as little as there can be. */
export const bodyOf = (kind: DriverKind, bin = "prog"): DriverBody => {
  switch (kind) {
    case "cli":
      return {
        kind,
        cli: {
          bin,
          binArgs: [],
          sandbox: {
            fs: { read: [], write: [], deny: [] },
            exec: { allow: false, spawn: [] },
            env: { pass: [], set: {} },
            tty: { required: false },
          },
          output: { defaultFormat: "text", jsonFlagArgs: [], exitCodes: {}, stream: "stdout", errorStream: "stderr" },
        },
      }
    case "http":
      return {
        kind,
        http: {
          base: { origin: "https://api.test", host: "api.test", port: 443, secure: true, path: "" },
          defaultHeaders: [],
          defaultMethod: "POST",
        },
      }
    case "mcp":
      return {
        kind,
        mcp: {
          server: { kind: "binary", path: bin, args: [], env: [] },
          transport: "stdio",
          prompts: [],
          resources: [],
          connection: { keepalive: false },
        },
      }
    case "sdk":
      return { kind, sdk: { packageManager: "npm", package: bin, importStyle: "esm" } }
    case "builtin":
      return { kind, builtin: {} }
  }
}

export const driverOf = (id: string, over: Partial<DriverContract> = {}): DriverContract => ({
  kind: "driver",
  id,
  name: id,
  description: id,
  version: "1.0.0",
  major: 1,
  body: bodyOf("http"),
  implements: [entryOf()],
  install: [],
  egress: [],
  egressFrom: "none",
  ingress: [],
  region: ["global"],
  regionDeclared: true,
  policyTags: [],
  requires: { os: [], arch: [] },
  setup: [],
  limits: {},
  examples: [],
  tags: [],
  metadata: {},
  source: source(`/catalogue/${id}/DRIVER.md`),
  ...over,
})

export const cliDriverOf = (id: string, over: Partial<DriverContract> = {}): DriverContract =>
  driverOf(id, {
    body: bodyOf("cli", id),
    ...over,
  })

/** Bound to every entry that names the tool's id, as the registry does where the version range holds. */
export const registered = (
  contract: DriverContract,
  tool: ToolContract = toolOf(),
  over: Partial<RegisteredDriver> = {},
): RegisteredDriver => ({
  key: `${contract.id}@${contract.major}`,
  contract,
  vouched: true,
  ownsId: true,
  verifiedTags: contract.policyTags,
  bindings: contract.implements
    .filter((entry) => entry.tool === tool.id)
    .map((implementation) => ({ tool, implementation, needs: [] })),
  ...over,
})

export interface Sketch {
  readonly kind?: DriverKind
  readonly cost?: number
  readonly entry?: Partial<Implementation>
  readonly driver?: Partial<DriverContract>
  readonly over?: Partial<RegisteredDriver>
}

/** A registered driver from the few facts that routing looks at. */
export const sketch = (
  id: string,
  { kind = "http", cost, entry = {}, driver = {}, over = {} }: Sketch = {},
  tool: ToolContract = toolOf(),
): RegisteredDriver => {
  const implementation = entryOf({ ...(cost === undefined ? {} : { costUnitsPerCall: cost }), ...entry })
  return registered(driverOf(id, { body: bodyOf(kind), implements: [implementation], ...driver }), tool, over)
}
