/**
 * A run's own contract and driver, and the host as that call sees it: with these two, and nothing else to call.
 *
 * Guarantees: both go through the checks of any manifest, and then have a name that no manifest can have (`caisson:run`), so
 * that no folder, grant or policy of a tool is ever about it, and it is never about another; nobody else can call it. What
 * the operator set (egress, limits, secrets' rules) narrows it as it narrows any call.
 */
import type { DriverContract, JsonObject, ToolContract } from "../../manifest/types.ts"
import { loadFront } from "../../manifest/read/load.ts"
import type { HostCore } from "../call/core.ts"
import { runKind, serveBy } from "../drivers/run/kind.ts"
import type { RunCommand } from "../drivers/run/kind.ts"
import type { Failure } from "../failure.ts"
import { buildRegistry } from "../registry/snapshot.ts"
import { secretVariables } from "./secrets.ts"
import type { ReadRun } from "./request.ts"

/** What receipts, envelopes and held calls call it. */
export const RUN = "caisson:run"
/** What it is while it is checked. */
const CHECKED_AS = "caisson-run"
const VERSION = "1.0.0"

const toolFront = ({ write, timeoutMs }: ReadRun): JsonObject => ({
  name: "run",
  id: CHECKED_AS,
  description: "A command that a person typed.",
  version: VERSION,
  inputs: {
    type: "object",
    additionalProperties: false,
    required: ["command"],
    properties: { command: { type: "array", minItems: 1, items: { type: "string" } } },
  },
  outputs: { type: "object" },
  mutates: write.map((glob) => `workspace:${glob}`),
  approval: "on-mutate",
  timeout_ms: timeoutMs,
})

const driverFront = (run: ReadRun, variables: readonly string[]): JsonObject => ({
  name: "run",
  id: CHECKED_AS,
  description: "A command that a person typed.",
  version: VERSION,
  kind: "cli",
  bin: "command",
  // A manifest's words for where its program comes from; a person named theirs.
  install: [{ method: "manual", instructions: "it is there" }],
  version_check: { cmd: "command --version", parse: "(.*)", range: "*" },
  sandbox: {
    network: { egress: [...run.allow], ingress: [] },
    fs: { read: [...run.read], write: [...run.write], deny: [] },
    exec: { allow: true, spawn: [...run.exec] },
    env: { pass: [], set: {} },
  },
  output: { default_format: "json", stream: "stdout", error_stream: "stderr" },
  ...(variables.length === 0 ? {} : { auth: { state: { env: [...variables] } } }),
  implements: [{ tool: CHECKED_AS, version: `^${VERSION}`, metadata: { cli: { argv: [] } } }],
})

const load = <T extends ToolContract | DriverContract>(kind: "tool" | "driver", front: JsonObject): T | Failure => {
  const { result } = loadFront(`<${RUN}>#${kind}`, kind, front, "compat")
  if (result.ok) return result.manifest as T
  const [first] = result.diagnostics.filter(({ severity }) => severity === "error")
  return {
    ok: false,
    code: "input_invalid",
    message: `what the command is to be allowed cannot be used: ${first?.message ?? "it is no contract"}`,
    ...(first === undefined ? {} : { hint: first.fix }),
    details: { field: first?.path ?? "" },
  }
}

const renamed = (driver: DriverContract): DriverContract =>
  Object.freeze({
    ...driver,
    id: RUN,
    implements: Object.freeze(driver.implements.map((entry) => Object.freeze({ ...entry, tool: RUN, toolRef: RUN }))),
  })

/** The host, for one run. */
export const coreFor = (core: HostCore, run: ReadRun, command: RunCommand): { ok: true; core: HostCore } | Failure => {
  const tool = load<ToolContract>("tool", toolFront(run))
  if ("ok" in tool) return tool
  const driver = load<DriverContract>("driver", driverFront(run, secretVariables(run.secrets, core.registry)))
  if ("ok" in driver) return driver
  const own = renamed(driver)
  serveBy(own, runKind(command))
  const made = buildRegistry([
    { result: { ok: true, manifest: Object.freeze({ ...tool, id: RUN }), diagnostics: [] }, trusted: true },
    { result: { ok: true, manifest: own, diagnostics: [] }, trusted: true },
  ])
  const { registry } = core
  return {
    ok: true,
    core: {
      ...core,
      availability: async () => ({ available: true, program: command.program }),
      registry: {
        ...made,
        secrets: registry.secrets,
        vouchedSecrets: registry.vouchedSecrets,
        policies: registry.policies,
        vouchedPolicies: registry.vouchedPolicies,
      },
    },
  }
}
