/** `/v1/tools`, `/v1/drivers`, `/v1/why`: what could be called, by whom it would be served, and why not. */
import { type Caller, isOperator } from "../../host/access/caller.ts"
import { toldDriver, toldTool, toldUnloaded, toldWhy } from "../../host/questions/told.ts"
import type { CallRequest } from "../../host/types.ts"
import { refuse } from "../http/problem.ts"
import { anything, callBody, count, flag, idParams, listOf, object, open, problems, text } from "../http/schemas.ts"
import type { Routes } from "./context.ts"

const availability = open({ available: flag, version: text, code: text, reason: text, fix: text }, ["available"])
/** Told to the operator alone: where a manifest lies. */
const file = { type: "string", description: "where its manifest lies; for the operator" } as const

const toolFields = {
  id: text,
  version: text,
  major: count,
  name: text,
  description: text,
  inputs: object,
  outputs: anything,
  inputsFiles: object,
  outputsFiles: object,
  mutates: listOf(text),
  approval: text,
  risk_level: count,
  tags: listOf(text),
  timeout_ms: count,
  examples: listOf(object),
  file,
  drivers: listOf(text),
  unauthed: count,
  unavailable: count,
  availability,
}
const atTimes = new Set(["inputsFiles", "outputsFiles", "file"])
const toolSchema = open(
  toolFields,
  Object.keys(toolFields).filter((key) => !atTimes.has(key)),
)
const driverFields = {
  id: text,
  version: text,
  major: count,
  kind: { enum: ["cli", "http", "mcp", "sdk", "builtin"] },
  name: text,
  description: text,
  implements: listOf(text),
  egress: listOf(text),
  region: listOf(text),
  region_declared: flag,
  policy_tags: listOf(text),
  file,
  availability,
}
const driverSchema = open(
  driverFields,
  Object.keys(driverFields).filter((key) => !atTimes.has(key)),
)
/** What is wrong with manifests, and those that did not load: for the operator; empty for others. */
const broken = {
  unloaded: listOf(
    open({ file: text, id: text, tools: listOf(text), availability }, ["file", "tools", "availability"]),
  ),
  diagnostics: listOf(
    open({ severity: { enum: ["error", "warning"] }, rule: text, file: text, path: text, message: text, fix: text }),
  ),
}
const callError = open({ code: text, class: text, message: text, retryable: flag, hint: text, details: object })
const whySchema = open(
  {
    tool: text,
    selected: text,
    error: callError,
    rows: listOf(
      open(
        {
          driver: text,
          kind: driverFields.kind,
          phase: { enum: ["candidates", "capability", "policy", "pin", "rank", "selected"] },
          reason: text,
          code: text,
          fix: text,
          costUnitsPerCall: { type: "number" },
          currency: text,
          costClass: text,
        },
        ["driver", "kind", "phase", "reason"],
      ),
    ),
    argv: listOf(text),
    egress: listOf(text),
    mutates: listOf(text),
    approval: open({ class: text, effects: { enum: ["commit", "ask"] } }),
    profile: object,
    profileDigest: text,
  },
  ["tool", "rows"],
)

const named = <T extends { readonly id: string; readonly version: string }>(
  list: readonly T[],
  id: string,
  what: string,
): T => {
  const found = list.find((one) => one.id === id || `${one.id}@${one.version.split(".")[0] ?? ""}` === id)
  if (found === undefined) throw refuse("not_found", `there is no such ${what}`, `GET /v1/${what}s lists them`)
  return found
}

export const catalogueRoutes = ({ app, host, empty, callerOf }: Routes): void => {
  const tools = async (caller: Caller) =>
    (await host.tools({ caller })).map((listing) => toldTool(listing, isOperator(caller)))
  const drivers = async (caller: Caller) =>
    (await host.drivers({ caller })).map((listing) => toldDriver(listing, isOperator(caller)))
  const brokenOf = (kind: "tool" | "driver", caller: Caller) => ({
    unloaded: toldUnloaded(host.unloaded({ caller }), kind),
    diagnostics: host.diagnostics({ caller }),
  })
  const tagged = { tags: ["catalogue"] }

  app.get(
    "/v1/tools",
    {
      schema: {
        operationId: "listTools",
        summary: "Tools that the caller may use, and whether each can be served",
        ...tagged,
        response: { "200": { description: "tools", ...open({ tools: listOf(toolSchema), ...broken }) }, ...problems() },
      },
    },
    async (request) => {
      const caller = callerOf(request)
      return { tools: await tools(caller), ...brokenOf("tool", caller) }
    },
  )
  app.get(
    "/v1/tools/:id",
    {
      schema: {
        operationId: "getTool",
        summary: "One tool, by `id` or `id@major`",
        ...tagged,
        params: idParams,
        response: { "200": { description: "the tool", ...toolSchema }, ...problems() },
      },
    },
    async (request) => named(await tools(callerOf(request)), (request.params as { id: string }).id, "tool"),
  )
  app.get(
    "/v1/drivers",
    {
      schema: {
        operationId: "listDrivers",
        summary: "Drivers of tools that the caller may use",
        ...tagged,
        response: {
          "200": { description: "drivers", ...open({ drivers: listOf(driverSchema), ...broken }) },
          ...problems(),
        },
      },
    },
    async (request) => {
      const caller = callerOf(request)
      return { drivers: await drivers(caller), ...brokenOf("driver", caller) }
    },
  )
  app.get(
    "/v1/drivers/:id",
    {
      schema: {
        operationId: "getDriver",
        summary: "One driver, by `id` or `id@major`",
        ...tagged,
        params: idParams,
        response: { "200": { description: "the driver", ...driverSchema }, ...problems() },
      },
    },
    async (request) => named(await drivers(callerOf(request)), (request.params as { id: string }).id, "driver"),
  )
  app.post(
    "/v1/why",
    {
      schema: {
        operationId: "explainCall",
        summary: "Which driver would serve a call, why each other was dropped, and the profile that it would get",
        ...tagged,
        body: callBody,
        response: { "200": { description: "the route", ...whySchema }, ...problems(413, 415) },
      },
    },
    async (request) => {
      const asked = request.body as CallRequest
      if (asked.workspace !== undefined && !asked.workspace.startsWith("/"))
        throw refuse("input_invalid", "`workspace` is not an absolute path", "name the folder from the root")
      return toldWhy(await host.why(asked, { caller: callerOf(request), empty }))
    },
  )
}
