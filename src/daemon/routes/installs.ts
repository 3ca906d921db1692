/**
 * `/v1/installs`: the packages of a driver, installed or mended while whoever asked goes on.
 *
 * Guarantees: operators alone. An install is told to who began it, and ends after a while.
 */
import type { FastifyRequest } from "fastify"
import { isOperator } from "../../host/access/caller.ts"
import type { InstallReport } from "../../host/types.ts"
import { problemOf, refuse } from "../http/problem.ts"
import { closed, flag, idParams, moment, name, object, open, problems, text } from "../http/schemas.ts"
import type { Jobs } from "../jobs.ts"
import { daemonLimits } from "../limits.ts"
import type { Routes } from "./context.ts"

interface Facts {
  readonly driver: string
  progress?: object
}

const KIND = "install"
const told = open(
  {
    id: text,
    driver: text,
    state: { enum: ["running", "ended"] },
    began: moment,
    ended: moment,
    progress: object,
    installed: flag,
    install: object,
    error: object,
  },
  ["id", "driver", "state", "began"],
)

export const installRoutes = ({ app, host, callerOf }: Routes, jobs: Jobs): void => {
  const tags = ["installs"]
  const find = (request: FastifyRequest, id = (request.params as { id: string }).id) => {
    const found = jobs.find<InstallReport, Facts>(KIND, id, callerOf(request))
    if (found === undefined) throw refuse("not_found", "there is no such install", "POST /v1/installs begins one")
    return found
  }
  const tell = ({ id, began, ended, result, facts: { driver, progress } }: ReturnType<typeof find>): object => {
    const base = { id, driver, state: ended === undefined ? "running" : "ended", began }
    if (ended === undefined) return { ...base, ...(progress === undefined ? {} : { progress }) }
    if (result?.ok === true) {
      const { ok: _ok, ...install } = result
      return { ...base, ended, installed: true, install }
    }
    const { problem } = refuse("internal", "the install failed for a reason that nobody foresaw")
    return { ...base, ended, installed: false, error: result === undefined ? problem : problemOf(result.error) }
  }

  app.post(
    "/v1/installs",
    {
      schema: {
        operationId: "beginInstall",
        summary: "Install the packages of a driver, and check its version",
        tags,
        body: closed({ driver: name }, ["driver"]),
        response: { "202": { description: "it is under way; see `Location`", ...told }, ...problems() },
      },
    },
    async (request, reply) => {
      const caller = callerOf(request)
      if (!isOperator(caller)) throw refuse("unauthorised", "only the operator of this host installs drivers")
      const { driver } = request.body as { driver: string }
      const facts: Facts = { driver }
      const { id } = jobs.begin(KIND, caller, daemonLimits.installMs.value, facts, (signal, kept) =>
        host.install(driver, { caller, signal, onProgress: (progress) => void (kept.progress = { ...progress }) }),
      )
      return reply
        .code(202)
        .header("location", `/v1/installs/${id}`)
        .send(tell(find(request, id)))
    },
  )
  app.get(
    "/v1/installs/:id",
    {
      schema: {
        operationId: "getInstall",
        summary: "How far an install is, and how it ended",
        tags,
        params: idParams,
        response: { "200": { description: "the install", ...told }, ...problems() },
      },
    },
    async (request) => tell(find(request)),
  )
  app.delete(
    "/v1/installs/:id",
    {
      schema: {
        operationId: "cancelInstall",
        summary: "End an install that is under way",
        tags,
        params: idParams,
        response: { "202": { description: "it is being ended", ...told }, ...problems(409) },
      },
    },
    async (request, reply) => {
      const found = find(request)
      if (found.ended !== undefined) throw refuse("conflict", "the install has ended", "GET it to see how", {}, 409)
      found.cancel()
      return reply.code(202).send(tell(found))
    },
  )
}
