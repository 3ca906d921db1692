/** Hand-made contracts, drivers and hosts for the tests of single steps: real types, no files. */
import { createKeeper } from "../../../src/host/call/running/kept/keeper.ts"
import { assembleLogins } from "../../../src/host/assemble/logins.ts"
import { storeFile } from "../../../src/data-folder/paths.ts"
import { openSqliteStore } from "../../../src/host/store/sqlite.ts"
import { type Store, StoreUnavailable } from "../../../src/host/store/store.ts"
import { mkdtempSync, realpathSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { type OperatorConfig, defaultConfig } from "../../../src/host/config/types.ts"
import { findAction } from "../../../src/manifest/read/catalogue.ts"
import { createHostedLayers } from "../../../src/sandbox/layers/hosted/layers.ts"
import type { HostCore } from "../../../src/host/call/core.ts"
import type { Admitted, Authorized, Requested, Routed, Sealed, SignedIn, Step } from "../../../src/host/call/steps.ts"
import { processCaller } from "../../../src/host/access/caller.ts"
import { admit } from "../../../src/host/call/admit.ts"
import { authorize } from "../../../src/host/call/authorize.ts"
import { findRoute, route } from "../../../src/host/call/route.ts"
import { seal } from "../../../src/host/call/seal.ts"
import { signIn } from "../../../src/host/call/sign-in.ts"
import type { Binding } from "../../../src/host/drivers/kind.ts"
import { kindOf } from "../../../src/host/drivers/kinds.ts"
import type { Program } from "../../../src/host/drivers/program/program.ts"
import { createReviews } from "../../../src/host/review/reviews.ts"
import { openDataFolder } from "../../../src/host/data/folder.ts"
import type { RegisteredDriver, Registry } from "../../../src/host/registry/types.ts"
import type { CallRequest } from "../../../src/host/types.ts"
import { parseEgressEntry } from "../../../src/manifest/values/egress-entry.ts"
import type {
  CliSandbox,
  CliSpec,
  DriverContract,
  Implementation,
  MutateScope,
  ToolContract,
} from "../../../src/manifest/types.ts"
import { openSealedHomes } from "../../../src/host/homes/sealed-homes.ts"
import { openFileVault } from "../../../src/host/secrets/file-vault.ts"
import { withMemory } from "../../../src/host/secrets/in-memory.ts"
import { noInstalls } from "../install/no-installs.ts"

export const scopes = (...texts: readonly string[]): MutateScope[] =>
  texts.map((text) => ({ text, class: text.slice(0, text.indexOf(":")), scope: text.slice(text.indexOf(":") + 1) }))

export const toolOf = (change: Partial<ToolContract> = {}): ToolContract => ({
  kind: "tool",
  id: "notes.append",
  name: "Append a note",
  description: "Appends a line to a note.",
  version: "1.2.0",
  major: 1,
  inputs: {
    type: "object",
    properties: { text: { type: "string" }, file: { type: "string", format: "workspace-path" } },
    required: ["text"],
    additionalProperties: false,
  },
  outputs: { type: "string" },
  idempotent: false,
  mutates: scopes("workspace:/notes/*"),
  requires: { secrets: [], tools: [] },
  approval: { class: "on-mutate" },
  riskLevel: 1,
  costClass: "trivial",
  timeoutMs: 5_000,
  driverConstraints: { forbid: [], requireKind: [] },
  tags: [],
  examples: [],
  metadata: {},
  source: { file: "/m/TOOL.md", mode: "strict", digest: `sha256:${"1".repeat(64)}`, leniencies: [] },
  ...change,
})

export const sandboxOf = (change: Partial<CliSandbox> = {}): CliSandbox => ({
  fs: { read: ["**"], write: ["notes/**"], deny: [] },
  exec: { allow: false, spawn: [] },
  env: { pass: [], set: {} },
  tty: { required: false },
  ...change,
})

export const implementationOf = (change: Partial<Implementation> = {}): Implementation => ({
  toolRef: "notes.append",
  tool: "notes.append",
  versionRange: "^1.0.0",
  dropInputs: [],
  dropOutputs: [],
  mapping: {},
  cli: { argv: ["--", "${input.text}"] },
  metadata: {},
  ...change,
})

export const cliSpec: CliSpec = {
  bin: "scribe",
  binArgs: ["-q"],
  sandbox: sandboxOf(),
  output: { defaultFormat: "text", jsonFlagArgs: [], exitCodes: {}, stream: "stdout", errorStream: "stderr" },
}

export const driverOf = (change: Partial<DriverContract> = {}): DriverContract => ({
  kind: "driver",
  id: "scribe",
  name: "Scribe",
  description: "Writes notes.",
  version: "2.0.1",
  major: 2,
  implements: [implementationOf()],
  install: [],
  egress: [],
  egressFrom: "none",
  ingress: [],
  region: ["global"],
  regionDeclared: false,
  policyTags: [],
  requires: { os: [], arch: [] },
  setup: [],
  limits: {},
  body: { kind: "cli", cli: cliSpec },
  examples: [],
  tags: [],
  metadata: {},
  source: { file: "/m/CLI.md", mode: "strict", digest: `sha256:${"2".repeat(64)}`, leniencies: [] },
  ...change,
})

export const egress = (...texts: readonly string[]): DriverContract["egress"] =>
  texts.map((text) => {
    const parsed = parseEgressEntry(text)
    if (!parsed.ok) throw new Error(parsed.message)
    return parsed.entry
  })

export const registered = (contract: DriverContract, tool: ToolContract): RegisteredDriver => {
  const bindings = contract.implements.map((implementation, i): Binding => {
    const bound = kindOf(contract)?.bind(contract, i, tool, implementation)
    const wrong = bound?.diagnostics.filter((each) => each.severity === "error") ?? []
    if (wrong.length > 0) throw new Error(JSON.stringify(wrong))
    return bound?.binding ?? { tool, implementation, needs: [] }
  })
  return { key: `${contract.id}@${contract.major}`, contract, bindings, vouched: true, ownsId: true, verifiedTags: [] }
}

export const programOf = (change: Partial<Program> = {}): Program => ({
  name: "scribe",
  found: "/usr/bin/scribe",
  path: "/usr/lib/scribe/scribe",
  interpreters: [],
  identity: { mtimeMs: 1, ctimeMs: 1, ino: 1, size: 1 },
  ...change,
})

export interface World {
  readonly tool?: ToolContract
  readonly drivers?: readonly DriverContract[]
  readonly config?: Partial<OperatorConfig>
  readonly registry?: Partial<Registry>
  readonly core?: Partial<HostCore>
}

/** A host of hand-made values; its data folder and workspace are real and the test's to remove. */
export const worldOf = ({
  tool = toolOf(),
  drivers = [driverOf()],
  config = {},
  registry = {},
  core = {},
}: World = {}): { core: HostCore; folder: string; workspace: string } => {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), "caisson-call-")))
  const data = openDataFolder(join(folder, "data"))
  const workspace = openDataFolder(join(folder, "work"))
  const known = drivers.map((contract) => registered(contract, tool))
  const made: Omit<HostCore, "logins"> = {
    data,
    catalogue: "/catalogue",
    installs: noInstalls,
    vault: withMemory(openFileVault(data)),
    homes: openSealedHomes({ data, vault: openFileVault(data), recover: async () => undefined }),
    layers: async () => createHostedLayers(data),
    config: { ...defaultConfig, ...config },
    registry: {
      tools: [tool],
      drivers: known,
      secrets: [],
      vouchedSecrets: [],
      actions: [],
      policies: [],
      vouchedPolicies: [],
      lostPolicies: [],
      failed: [],
      diagnostics: [],
      narrowings: {},
      reaches: [],
      tool: (ref) => (ref === tool.id || ref === `${tool.id}@${tool.major}` ? tool : undefined),
      toolsNamed: (ref) => (ref === tool.id || ref === `${tool.id}@${tool.major}` ? [tool] : []),
      driver: (ref) => known.find((driver) => driver.key === ref),
      action: (ref) => findAction(ref, registry.actions ?? []),
      driversFor: () => known,
      ...registry,
    },
    availability: async () => ({ available: true, version: "2.0.0", program: programOf() }),
    findProgram: (name) =>
      name === "git" ? programOf({ name, found: "/usr/bin/git", path: "/usr/bin/git" }) : undefined,
    record: async () => undefined,
    inUse: [],
    runInModule: () => Promise.reject(new Error("not in these tests")),
    health: async () => new Map(),
    backend: () => Promise.reject(new Error("this test starts no sandbox")),
    kept: createKeeper(),
    egressProxy: () => Promise.reject(new Error("this test serves no egress")),
    recover: async () => undefined,
    store: () => Promise.reject(new StoreUnavailable("trouble", "this test remembers nothing", "")),
    storeIsUsed: () => core.store !== undefined,
    reviews: createReviews("/catalogue", () => Promise.reject(new Error("this test remembers nothing"))),
    ...core,
  }
  let opened: Promise<Store> | undefined
  const store = (): Promise<Store> => (opened ??= openSqliteStore(storeFile(data)))
  const logins = assembleLogins({ ...made, store }, async () => undefined, new AbortController().signal)
  return { folder, workspace, core: { logins, ...made } }
}

export const value = <T>(step: Step<T>): T => {
  if (!step.ok) throw new Error(`${step.code}: ${step.message}`)
  return step.value
}

/** What is asked, and beside it who asks. */
export type Asked = Partial<CallRequest> & Partial<Pick<Requested, "caller" | "approved" | "unreadable">>
const requested = (
  { caller = processCaller("alice"), approved = false, unreadable, ...request }: Asked,
  workspace: string,
): Requested => ({
  call: "01J",
  operation: "01J",
  tell: () => undefined,
  signal: new AbortController().signal,
  caller,
  approved,
  ...(unreadable === undefined ? {} : { unreadable }),
  request: { tool: "notes.append", input: { text: "hello" }, workspace, ...request },
})
export type Place = ReturnType<typeof worldOf>

export const admitted = ({ core, workspace }: Place, request: Asked = {}): Step<Admitted> =>
  admit(core, requested(request, workspace))
export const authorized = (place: Place, request: Asked = {}): Step<Authorized> =>
  authorize(place.core, value(admitted(place, request)))
export const routed = async (place: Place, request: Asked = {}): Promise<Step<Routed>> => {
  const call = value(authorized(place, request))
  return route(call, await findRoute(place.core, call))
}
export const signedIn = async (place: Place, request: Asked = {}): Promise<Step<SignedIn>> =>
  signIn(place.core, value(await routed(place, request)))
export const sealedOf = async (place: Place, request: Asked = {}): Promise<Step<Sealed>> =>
  seal(place.core, value(await signedIn(place, request)))
