/**
 * `/v1/logins`: where logins stand, and a login driven from afar: what it wants of a person is told, answers go in.
 *
 * Guarantees: for the caller's own user alone, or one that it may act for; a login under way is told to nobody but who began
 * it, and ends after a while. Nothing that is answered holds a token or what a person typed.
 */
import type { FastifyRequest } from "fastify"
import { OWN_TENANT, tenantOf } from "../../host/access/caller.ts"
import type { LoginReport, WorkspaceOptions } from "../../host/types.ts"
import { orProblem, problemOf, refuse } from "../http/problem.ts"
import { closed, flag, idParams, listOf, moment, name, object, open, problems, text } from "../http/schemas.ts"
import type { Jobs } from "../jobs.ts"
import { daemonLimits } from "../limits.ts"
import { RelayedPerson } from "../relayed-person.ts"
import type { Routes } from "./context.ts"

interface Facts {
  readonly driver: string
  readonly workspace: string
  readonly person: RelayedPerson
}

const KIND = "login"
const standing = open(
  {
    driver: text,
    user: text,
    workspace: text,
    state: text,
    account: text,
    expires: moment,
    proven: moment,
    refreshed: moment,
    pending: listOf(text),
    why: text,
    next: text,
  },
  ["driver", "user", "workspace", "state"],
)
const page = open({ url: text, code: text, direct: text, through: text, from: { enum: ["host", "program"] } }, [
  "url",
  "from",
])
const prompt = open(
  {
    id: text,
    text,
    type: { enum: ["text", "secret", "boolean", "select"] },
    default: text,
    options: listOf(open({ value: text, label: text })),
  },
  ["id", "text", "type"],
)
const told = open(
  {
    id: text,
    driver: text,
    workspace: text,
    state: { enum: ["running", "ended"] },
    began: moment,
    ended: moment,
    /** what the person opens, answers, and sees of the program; while it runs */
    pages: listOf(page),
    prompts: listOf(prompt),
    terminal: { type: "string", description: "what the driver's program printed, as plain text: a stranger's words" },
    progress: object,
    signed_in: flag,
    login: object,
    error: object,
  },
  ["id", "driver", "workspace", "state", "began"],
)
const answers = {
  type: "object",
  maxProperties: 64,
  additionalProperties: { type: "string", maxLength: 65_536 },
  description: "by the id of the question; also of one that is not asked yet",
} as const
const folder = { ...name, description: "absolute path of a folder" } as const
const UNBEGUN = new Set(["not_found", "input_invalid", "unauthorised"])
const noSuchLogin = (): Error => refuse("not_found", "there is no such login under way", "POST /v1/logins begins one")

export const loginRoutes = ({ app, host, callerOf }: Routes, jobs: Jobs): void => {
  const tags = ["logins"]
  const whoAt = (request: FastifyRequest, workspace: string) => {
    const caller = callerOf(request)
    // Logins are kept by user: another tenant's user of the same name is somebody else.
    if (tenantOf(caller) !== OWN_TENANT)
      throw refuse("unauthorised", "logins are there for this host's own tenant alone", undefined, {}, 403)
    if (!workspace.startsWith("/"))
      throw refuse("input_invalid", "`workspace` is not an absolute path", "name the folder from the root")
    return { caller, workspace }
  }
  const find = (request: FastifyRequest) => {
    const found = jobs.find<LoginReport, Facts>(KIND, (request.params as { id: string }).id, callerOf(request))
    if (found === undefined) throw noSuchLogin()
    return found
  }
  const tell = ({ id, began, ended, result, facts }: ReturnType<typeof find>): object => {
    const { driver, workspace, person } = facts
    const base = { id, driver, workspace, state: ended === undefined ? "running" : "ended", began }
    if (ended === undefined) {
      const { pages, prompts, terminal, progress } = person
      return { ...base, pages, prompts, terminal, ...(progress === undefined ? {} : { progress }) }
    }
    if (result?.ok === true) {
      const { ok: _ok, ...login } = result
      return { ...base, ended, signed_in: true, login }
    }
    const { problem } = refuse("internal", "the login failed for a reason that nobody foresaw")
    return { ...base, ended, signed_in: false, error: result === undefined ? problem : problemOf(result.error) }
  }

  app.get(
    "/v1/logins",
    {
      schema: {
        operationId: "listLogins",
        summary: "Where the logins of the caller's user stand, in one workspace",
        tags,
        querystring: closed({ workspace: folder }, ["workspace"]),
        response: { "200": { description: "logins", ...open({ logins: listOf(standing) }) }, ...problems() },
      },
    },
    async (request) => {
      const { workspace } = request.query as { workspace: string }
      return { logins: orProblem(await host.auth(whoAt(request, workspace))).logins }
    },
  )

  app.post(
    "/v1/logins",
    {
      schema: {
        operationId: "beginLogin",
        summary: "Set a driver up and log in, for the caller's user in one workspace",
        tags,
        body: closed({ driver: name, workspace: folder, answers }, ["driver", "workspace"]),
        response: { "202": { description: "it is under way; see `Location`", ...told }, ...problems() },
      },
    },
    async (request, reply) => {
      const {
        driver,
        workspace,
        answers: given = {},
      } = request.body as {
        driver: string
        workspace: string
        answers?: Record<string, string>
      }
      const who = whoAt(request, workspace)
      const person = new RelayedPerson()
      const begun = Promise.withResolvers<LoginReport | undefined>()
      for (const [id, answer] of Object.entries(given)) person.answer(id, answer)
      const began = jobs.begin(
        KIND,
        who.caller,
        daemonLimits.loginMs.value,
        { driver, workspace, person },
        async (signal) => {
          using here = person
          const login = host.login(driver, {
            ...who,
            signal,
            person: here.person,
            onProgress: (progress) => {
              here.progress = progress
              begun.resolve(undefined)
            },
          })
          login.then(begun.resolve, () => begun.resolve(undefined))
          return await login
        },
      )
      const found = jobs.find<LoginReport, Facts>(KIND, began.id, who.caller)
      // Who may not act for the user is refused by the host, and could not look at it.
      if (found === undefined)
        throw refuse("unauthorised", "a caller logs in for its own user alone", undefined, {}, 403)
      // One that could not even begin has nothing to be looked after.
      const late = setTimeout(() => begun.resolve(undefined), daemonLimits.loginBeginMs.value)
      const ended = await begun.promise
      clearTimeout(late)
      if (ended?.ok === false && UNBEGUN.has(ended.error.code)) orProblem(ended)
      return reply
        .code(202)
        .header("location", `/v1/logins/${found.id}`)
        .header("cache-control", "no-store")
        .send(tell(found))
    },
  )

  app.get(
    "/v1/logins/:id",
    {
      schema: {
        operationId: "getLogin",
        summary: "How far a login is, and what it wants of the person",
        tags,
        params: idParams,
        response: { "200": { description: "the login", ...told }, ...problems() },
      },
    },
    async (request, reply) => reply.header("cache-control", "no-store").send(tell(find(request))),
  )

  app.post(
    "/v1/logins/:id",
    {
      schema: {
        operationId: "answerLogin",
        summary: "A person's answers, and what they type for the program",
        tags,
        params: idParams,
        body: closed({ answers, terminal: { type: "string", minLength: 1, maxLength: 65_536 } }),
        response: { "200": { description: "the login", ...told }, ...problems(409) },
      },
    },
    async (request, reply) => {
      const found = find(request)
      const { answers: given = {}, terminal } = request.body as { answers?: Record<string, string>; terminal?: string }
      if (found.ended !== undefined) throw refuse("conflict", "the login has ended", "GET it to see how", {}, 409)
      const { person } = found.facts
      const isTaken =
        Object.entries(given).every(([id, answer]) => person.answer(id, answer)) &&
        (terminal === undefined || person.type(terminal))
      if (!isTaken)
        throw refuse(
          "input_invalid",
          "too much was answered that is not asked for yet",
          "GET it to see what is asked for",
        )
      return reply.header("cache-control", "no-store").send(tell(find(request)))
    },
  )

  app.delete(
    "/v1/logins/:id",
    {
      schema: {
        operationId: "cancelLogin",
        summary: "End a login that is under way; nobody is signed in by it",
        tags,
        params: idParams,
        response: { "202": { description: "it is being ended", ...told }, ...problems(409) },
      },
    },
    async (request, reply) => {
      const found = find(request)
      if (found.ended !== undefined) throw refuse("conflict", "the login has ended", "GET it to see how", {}, 409)
      found.cancel()
      return reply.code(202).send(tell(found))
    },
  )

  app.delete(
    "/v1/logins",
    {
      schema: {
        operationId: "logout",
        summary: "Sign out: what the login left is wiped",
        tags,
        querystring: closed({ driver: name, workspace: folder }, ["driver", "workspace"]),
        response: {
          "200": { description: "signed out", ...open({ driver: text, was: text, revoked: text }, ["driver", "was"]) },
          ...problems(409),
        },
      },
    },
    async (request) => {
      const { driver, workspace } = request.query as { driver: string } & Required<Pick<WorkspaceOptions, "workspace">>
      const { ok: _ok, ...done } = orProblem(await host.logout(driver, whoAt(request, workspace)))
      return done
    },
  )
}
