/**
 * One `tools/call`, from the request to its answer, over as many rounds as it takes.
 *
 * Guarantees: what a contract asks for comes first, with nothing under way; then the host's own call, with the host's own
 * authorization and receipt. Whoever leaves cancels the call, unless it went on as a task. A question in the middle
 * reaches the person by the client: in the new era the client comes back with the answer, in the old one it is asked on
 * the spot. Effects that need a yes, and calls that cannot be taken back before they run, are asked about where the
 * client can and the caller may approve; an answer that does not come within its time leaves them held, under an id and
 * an address, and the tool says so. Nothing of a client's words decides who it is.
 */
import { randomUUID } from "node:crypto"
import {
  type CallToolRequest,
  type CallToolResult,
  type ElicitRequestFormParams,
  inputRequired,
  type InputRequiredResult,
  MissingRequiredClientCapabilityError,
  ProtocolError,
  ProtocolErrorCode,
  type Server,
  type ServerContext,
} from "@modelcontextprotocol/server"
import type { Caller } from "../../host/access/caller.ts"
import type { ApprovalQuestion, Envelope, Host } from "../../host/types.ts"
import type { JsonObject, JsonValue } from "../../manifest/types.ts"
import type { Entry } from "../catalogue/catalogue.ts"
import { resultOf } from "../catalogue/tools.ts"
import { mcpLimits } from "../limits.ts"
import { goIn, goQuestion, heldIn, KEEP, keepIn, keepQuestion } from "./approval.ts"
import { askBefore } from "./before.ts"
import { driverIn, LOGIN, type Login, type Logins } from "./login.ts"
import { type Reach, reachOf, TASKS } from "./reach.ts"
import { Run } from "./run.ts"
import type { Runs } from "./runs.ts"
import { checkState, requestOf, type SealedState, type State, type States, whoseOf } from "./states.ts"
import { type CreatedTask, createdTask } from "./task.ts"
import { createTelling } from "./told.ts"

type CallingHost = Pick<Host, "call" | "approval" | "decide" | "login">
interface Calling {
  readonly host: CallingHost
  readonly caller: Caller
  readonly states: States
  readonly runs: Runs
  readonly logins: Logins
  readonly workspace?: string
  readonly empty?: string
}
type CallAnswer = CallToolResult | InputRequiredResult | CreatedTask

/** A request as it stands: what its rounds have in common. */
interface Asked {
  readonly calling: Calling
  readonly entry: Entry
  readonly reach: Reach
  readonly ctx: ServerContext
  readonly request: string
  readonly whose: string
  /** what the call is made with, as far as it is known */
  readonly input: JsonObject
}

const refused = (text: string): CallToolResult => ({ isError: true, content: [{ type: "text", text }] })
const seal = (state: State, { request, whose }: Asked): SealedState => ({ ...state, request, whose })

/** Effects are asked about once their layer is held, when nothing waits any more. */
const askFirst =
  (run: Run, input: JsonObject) =>
  async (question: ApprovalQuestion): Promise<boolean | undefined> => {
    const asked = question.about === "call" ? goQuestion(question, input) : undefined
    return asked === undefined ? undefined : goIn(await run.ask(asked))
  }

const begin = (input: JsonObject, { calling, entry, reach, ctx, whose }: Asked): Run => {
  const { host, caller, workspace, empty } = calling
  const run = new Run(entry, whose, createTelling(entry.name, ctx))
  const request = { tool: entry.contract.id, input: input as JsonValue }
  run.follow(
    host.call(workspace === undefined ? request : { ...request, workspace }, {
      caller,
      signal: run.signal,
      onEvent: (event) => run.telling.hear(event),
      ...(reach.form ? { elicit: run.elicit } : {}),
      ...(reach.form && caller.mayApprove ? { approve: askFirst(run, input) } : {}),
      ...(empty === undefined ? {} : { empty }),
    }),
  )
  return run
}

/** Asked on the spot; nobody there within its time is no answer. */
const onTheSpot = async (request: unknown, { ctx }: Asked): Promise<unknown> => {
  const { params: own } = request as { readonly params: ElicitRequestFormParams }
  const params = (own.mode as string | undefined) === "url" ? { ...own, elicitationId: randomUUID() } : own
  return ctx.mcpReq.elicitInput(params, { timeout: mcpLimits.askMs.value }).catch(() => ({ action: "cancel" }))
}

const decided = async (keep: boolean | undefined, held: string, asked: Asked): Promise<CallAnswer> => {
  const { host, caller } = asked.calling
  if (keep !== undefined)
    return resultOf(await host.decide(held, keep ? "approve" : "deny", { caller }), asked.entry.shown)
  const record = await host.approval(held, { caller })
  return refused(
    `approval_required: nobody answered; the effects are held until ${record?.expires ?? "they expire"}\nhint: \`caisson approvals show ${held}\`, or /v1/approvals/${held} of the daemon`,
  )
}

/** Back from the page, or not: the same call again, or why it still cannot be made. */
const afterLogin = async (login: Login | undefined, answer: unknown, asked: Asked): Promise<CallAnswer> => {
  const action = (answer as { readonly action?: unknown } | null | undefined)?.action
  if (login !== undefined && action !== "accept") login.cancel()
  const late = new Promise<boolean>((resolve) => setTimeout(resolve, mcpLimits.askMs.value, false).unref())
  // One that was ended is in nobody's way once it has.
  const isIn = login !== undefined && (await Promise.race([login.done, late])) && action === "accept"
  if (login === undefined || !isIn)
    return refused("auth_required: nobody signed in; make the call again once somebody has")
  return follow(begin(login.input, asked), asked)
}

const askForLogin = async (driver: string, asked: Asked): Promise<CallAnswer | undefined> => {
  const { calling, reach, ctx, whose, input } = asked
  const { host, caller, states, logins, workspace } = calling
  const login = await logins.begin(host, caller, driver, workspace, whose, input)
  if (login === undefined) return undefined
  if (!reach.modern) return afterLogin(login, await onTheSpot(login.question, asked), asked)
  return inputRequired({
    inputRequests: { [LOGIN]: login.question },
    requestState: await states.mint(seal({ about: "login", login: login.id }, asked), ctx),
  })
}

/** How it ended, or the question that it ended with. */
const ended = async (envelope: Envelope, asked: Asked): Promise<CallAnswer> => {
  const { calling, reach, entry, ctx } = asked
  const { host, caller, states } = calling
  const driver = reach.url ? driverIn(envelope) : undefined
  const login = driver === undefined ? undefined : await askForLogin(driver, asked)
  if (login !== undefined) return login
  const held = heldIn(envelope)
  const detail =
    held === undefined || !caller.mayApprove || !reach.form ? undefined : await host.approval(held, { caller })
  if (held === undefined || detail === undefined || !detail.intact) return resultOf(envelope, entry.shown)
  const question = keepQuestion(detail)
  if (!reach.modern) return decided(keepIn(await onTheSpot(question, asked)), held, asked)
  return inputRequired({
    inputRequests: { [KEEP]: question },
    requestState: await states.mint(seal({ about: "held", held }, asked), ctx),
  })
}

const asTask = (run: Run, { calling, entry }: Asked): CreatedTask | undefined => {
  const keepMs = entry.contract.timeoutMs + mcpLimits.taskKeepMs.value
  return calling.runs.keep(run, keepMs) ? createdTask(run) : undefined
}

const follow = async (run: Run, asked: Asked): Promise<CallAnswer> => {
  const { calling, reach, ctx } = asked
  const { runs, states } = calling
  let afterMs: number | undefined = reach.tasks ? mcpLimits.taskAfterMs.value : undefined
  for (;;) {
    const woken = await run.next(ctx.mcpReq.signal, afterMs)
    switch (woken) {
      case "ended": {
        runs.drop(run)
        if (run.envelope === undefined) throw run.fault
        return ended(run.envelope, asked)
      }
      case "left":
        run.cancel()
        runs.drop(run)
        await run.next(new AbortController().signal)
        return refused("cancelled: the client left")
      case "late": {
        const task = asTask(run, asked)
        if (task !== undefined) return task
        afterMs = undefined
        break
      }
      case "asks": {
        const { questions } = run
        if (!reach.modern) {
          const answers = Object.entries(questions).map(async ([key, question]) => [
            key,
            await onTheSpot(question, asked),
          ])
          run.answer(Object.fromEntries(await Promise.all(answers)) as Record<string, unknown>)
        } else if (runs.keep(run, mcpLimits.stateSeconds.value * 1_000)) {
          run.telling.turnTo(undefined)
          return inputRequired({
            inputRequests: questions,
            requestState: await states.mint(seal({ about: "running", running: run.id }, asked), ctx),
          })
        } else run.answer(Object.fromEntries(Object.keys(questions).map((key) => [key, { action: "cancel" }])))
      }
    }
  }
}

const resumed = async (id: string, asked: Asked): Promise<CallAnswer> => {
  const { calling, ctx, whose } = asked
  const run = calling.runs.find(id, whose)
  if (run === undefined)
    throw new ProtocolError(ProtocolErrorCode.InvalidParams, "that call is over, or waited too long for an answer")
  run.telling.turnTo(ctx)
  run.answer(ctx.mcpReq.inputResponses ?? {})
  return follow(run, asked)
}

const checkTasks = ({ entry, reach }: Asked): void => {
  if (entry.shown.task !== "must" || !reach.modern || reach.tasks) return
  throw new MissingRequiredClientCapabilityError(
    { requiredCapabilities: { extensions: { [TASKS]: {} } } },
    `\`${entry.name}\` goes on as a task, which the client does not say that it knows`,
  )
}

export const callTool = async (
  calling: Calling,
  entry: Entry,
  input: JsonObject,
  server: Server,
  { params }: Pick<CallToolRequest, "params">,
  ctx: ServerContext,
): Promise<CallAnswer> => {
  const whose = whoseOf(calling.caller)
  const request = requestOf("tools/call", params.name, params.arguments)
  const first: Asked = { calling, entry, reach: reachOf(server, ctx), ctx, request, whose, input }
  const state = checkState(ctx.mcpReq.requestState<SealedState>(), whose, request)
  const answers = ctx.mcpReq.inputResponses
  if (state?.about === "held") return decided(keepIn(answers?.[KEEP]), state.held, first)
  if (state?.about === "running") return resumed(state.running, first)
  if (state?.about === "login") return afterLogin(calling.logins.find(state.login, whose), answers?.[LOGIN], first)
  checkTasks(first)
  const before = await askBefore(entry, input, state, { ...first, states: calling.states }, ctx)
  if (before.is === "asks") return before.result
  if (before.is === "refused") return refused(`input_invalid: ${before.message}`)
  const asked: Asked = { ...first, input: before.input }
  const run = begin(before.input, asked)
  if (asked.reach.tasks && entry.shown.task !== "never") {
    const task = asTask(run, asked)
    if (task !== undefined) return task
  }
  return follow(run, asked)
}
