/**
 * The embedded host: registry, sandbox, evidence and the calls between them, in one process.
 *
 * Guarantees: creating one needs no sandbox and starts nothing; the backend starts with the first thing that must be
 * sealed. Calls may run side by side. `close` waits for calls under way, cancels those that take too long, and leaves
 * no process, socket or lock. Of calls that a killed host left open, receipts are written before the first call here.
 */
import { fileURLToPath } from "node:url"
import { type Caller, isOperator, tenantOf } from "./access/caller.ts"
import { explain } from "./questions/explain.ts"
import { listDrivers, listTools } from "./questions/listing.ts"
import { perform } from "./call/perform.ts"
import { unlessCancelled } from "./call/running/cancelled.ts"
import type { Requested, Waits } from "./call/steps.ts"
import { loadConfig } from "./config/load.ts"
import type { OperatorConfig } from "./config/types.ts"
import { HostStartError, startFailure } from "./start-error.ts"
import { openCore, type OpenCore } from "./assemble/core.ts"
import { Generations, latest } from "./assemble/generations.ts"
import { openGround } from "./assemble/ground.ts"
import { Lanes } from "./call/admission/lanes.ts"
import type { HostCore } from "./call/core.ts"
import { sortedManifests } from "./assemble/definitions.ts"
import { readBuiltins } from "./drivers/embedded/functions.ts"
import { dataFolderOf, openDataFolder } from "./data/folder.ts"
import { createUlids } from "./data/ulid.ts"
import { callErrorOf } from "./failure.ts"
import { brokenManifest } from "./registry/broken.ts"
import { HeldCalls } from "./held/held-calls.ts"
import { installDriver } from "./lifecycle/install-driver.ts"
import { listAuth, loginDriver, logoutDriver } from "./lifecycle/login-driver.ts"
import { pruneInstalled } from "./lifecycle/prune-installed.ts"
import { questionsOf } from "./lifecycle/answer-questions.ts"
import { grantsOf } from "./lifecycle/keep-grants.ts"
import { acceptAfter, createReload, needsStart } from "./lifecycle/reload.ts"
import { tokensOf } from "./lifecycle/keep-tokens.ts"
import { tapeOf } from "./call/tape/call-tape.ts"
import { callKeyOf } from "./record/call-key.ts"
import { makeRun } from "./run/run.ts"
import { forRun, inRunWords } from "./run/words.ts"
import { RecordedCalls } from "./record/recorded.ts"
import { secretsOf } from "./lifecycle/keep-secrets.ts"
import { reviewDriver } from "./lifecycle/review-driver.ts"
import { hostLimits } from "./limits.ts"
import { readOptions } from "./options.ts"
import type { ReasonCode } from "./reasons.ts"
import type { ReceiptIndex } from "./receipts/index-file.ts"
import { exportReceipts, tellReceipts } from "./questions/receipts.ts"
import { closeAbandonedCalls } from "./receipts/open-calls.ts"
import { openAuditLog } from "./receipts/log.ts"
import type { FailedManifest, Registry } from "./registry/types.ts"
import { type Aside, createTurnstile } from "../base/turnstile.ts"
import { leaveNoCore } from "../linux/processes.ts"
import { unknownKey } from "./unknown-key.ts"
import type {
  BegunCall,
  CallOptions,
  CallsOptions,
  CallRequest,
  DecideOptions,
  Envelope,
  Host,
  HostOptions,
  InstallDriverOptions,
  ListOptions,
  LoginDriverOptions,
  LogoutDriverOptions,
  ReceiptsOptions,
  ReviewOptions,
  RunOptions,
  RunRequest,
  UnloadedListing,
  WhyOptions,
  WhyReport,
  WorkspaceOptions,
} from "./types.ts"

const OPTIONS: readonly (keyof HostOptions)[] = ["data", "manifests", "builtins", "backend", "warm", "record", "config"]

/** Seen from src/host and from dist/host alike. */
const catalogue = fileURLToPath(new URL("../../manifests", import.meta.url))

/** A driver's load failure marks it unavailable and leaves the rest standing (AIP-30 principle 9). */
const unloadedOf = (failed: FailedManifest): readonly UnloadedListing[] => {
  const { file, kind, claims } = failed
  if (kind !== "tool" && kind !== "driver" && kind !== "cli") return []
  const { code, message, hint } = callErrorOf(brokenManifest(failed))
  const availability = { available: false, code: code as ReasonCode, reason: message, fix: hint } as const
  return [{ file, kind: kind === "tool" ? "tool" : "driver", claims, availability }]
}

export const createHost = async (options: HostOptions = {}): Promise<Host> => {
  const odd = unknownKey(options, OPTIONS)
  if (odd !== undefined) throw new HostStartError("input_invalid", `what createHost was given ${odd.message}`, odd.fix)
  const folder = dataFolderOf(options.data)
  try {
    // Before any secret is in this process's memory.
    leaveNoCore()
    return await openHost(openDataFolder(folder), options)
  } catch (error) {
    throw startFailure(error, folder)
  }
}

/** Users take turns. */
const clientOf = (caller: Caller): string => JSON.stringify([tenantOf(caller), caller.user])

/** Options of a call, read. */
type Called = CallOptions & { readonly caller: Caller }

const openHost = async (data: string, options: HostOptions): Promise<Host> => {
  const config = loadConfig(data, options.config)
  const closing = new AbortController()
  await using opening = new AsyncDisposableStack()
  const log = opening.use(openAuditLog(data, config.receipts))
  const warm = options.warm ?? false
  const ground = opening.use(
    await openGround({ data, config, warm, ...(options.backend === undefined ? {} : { backend: options.backend }) }),
  )
  const given = { ...sortedManifests(options.manifests ?? []), builtins: readBuiltins(options.builtins) }
  const assemble = (settings: OperatorConfig, accept?: (registry: Registry) => void): Promise<OpenCore> =>
    openCore({
      data,
      config: settings,
      catalogue,
      ...given,
      ground,
      record: (draft) => log.append(draft),
      closing: closing.signal,
      ...(accept === undefined ? {} : { accept }),
    })
  const first = await assemble(config)
  ground.serve(first.registry)
  opening.move()
  const generations = new Generations(first)
  /** for those who live longer than a generation */
  const core: HostCore = latest(() => generations.now)
  const nextId = createUlids()
  const lanes = new Lanes()
  const turn = createTurnstile(hostLimits.concurrentCalls.value)
  const running = new Set<Promise<unknown>>()
  let closed: Promise<void> | undefined
  let abandoned: Promise<unknown> | undefined

  const held = new HeldCalls(core, log, closing.signal)
  let index: Promise<ReceiptIndex> | undefined
  /** Opened by the first question: a Node too old for what it stands on is told so by name, as soon as it imports the host. */
  const receiptIndex = (): Promise<ReceiptIndex> =>
    (index ??= import("./receipts/index-file.ts").then(({ openReceiptIndex }) => openReceiptIndex(data, "shared")))
  const recorded = new RecordedCalls(data, core, options.record ?? false)
  const requestOf = (request: CallRequest, options: Called): Omit<Requested, "tell" | "nesting"> => {
    const { caller, approve, elicit, approved = false, empty, record, replay, onChanges, signal, key } = options
    const id = nextId()
    const tape = tapeOf({ record, replay })
    const { unreadable } = options
    // Read once and whole, whatever it is; what is no request has no tool.
    const asked = { ...request }
    return {
      call: id,
      request: asked,
      caller,
      approved,
      operation: (key === undefined ? undefined : callKeyOf(key, caller, asked)?.digest) ?? id,
      ...(approve === undefined ? {} : { ask: approve }),
      ...(elicit === undefined ? {} : { elicit }),
      ...(unreadable === undefined ? {} : { unreadable }),
      ...(tape?.ok === false ? { refused: tape } : {}),
      ...(onChanges === undefined ? {} : { onChanges }),
      ...(empty === undefined ? {} : { empty }),
      ...(tape?.ok === true ? { tape: tape.value } : {}),
      signal: signal === undefined ? closing.signal : AbortSignal.any([signal, closing.signal]),
    }
  }
  const track = <T>(work: Promise<T>): Promise<T> => {
    const settled = work
      .then(
        () => undefined,
        () => undefined,
      )
      .then(() => void running.delete(settled))
    running.add(settled)
    return work
  }
  const open = <T>(work: (core: HostCore) => Promise<T>): Promise<T> =>
    closed === undefined ? track(generations.within(work)) : Promise.reject(new Error("this host is closed"))

  /** Held calls first: a call that was held has its receipt from there. */
  const tidyUp = async (): Promise<void> => {
    await held.tend().catch(() => undefined)
    await closeAbandonedCalls(data, log).catch(() => undefined)
    await recorded.tend().catch(() => undefined)
  }
  const begin = async (request: CallRequest, given: CallOptions = {}): Promise<BegunCall> => {
    const options = readOptions("call", "call", given)
    return open(() => {
      const requested = requestOf(request, options)
      const { onEvent: observe, key } = options
      const client = clientOf(options.caller)
      const until = performance.now() + Math.min(options.wait ?? 0, hostLimits.waitMs.value)
      const waits = (aside: Aside): Waits => ({
        until,
        turn: (workspace) =>
          aside(() => {
            const late = AbortSignal.timeout(Math.max(0, Math.ceil(until - performance.now())))
            return lanes.enter(workspace, client, AbortSignal.any([requested.signal, late]))
          }),
      })
      const make = (): Promise<Envelope> =>
        turn.pass(
          async (aside) => {
            abandoned ??= tidyUp()
            await unlessCancelled(abandoned, requested.signal)
            const asked = options.wait === undefined ? requested : { ...requested, wait: waits(aside) }
            const told = { holder: held, ...(observe === undefined ? {} : { observe }) }
            return generations.within((now) => perform(now, log, asked, told))
          },
          requested.signal,
          client,
        )
      const asked = { call: requested.call, request: requested.request, caller: options.caller, key }
      return recorded.begin(asked, () => track(make()))
    })
  }
  const call = async (request: CallRequest, given: CallOptions = {}): Promise<Envelope> =>
    (await begin(request, given)).envelope
  const run = async (request: RunRequest, given: RunOptions = {}): Promise<Envelope> => {
    const { attachment, stdin, onEvent: observe, approve, ...rest } = readOptions("run", "run", given)
    const options = { ...rest, ...(approve === undefined ? {} : { approve: inRunWords(approve) }) }
    const asked = { ...request }
    const work = async (now: HostCore, cancel: AbortSignal): Promise<Envelope> => {
      abandoned ??= tidyUp()
      await unlessCancelled(abandoned, cancel)
      const streams = { ...(attachment === undefined ? {} : { attachment }), ...(stdin === undefined ? {} : { stdin }) }
      const made = makeRun(now, asked, options.caller, streams)
      const refused = made.refused === undefined ? {} : { refused: made.refused }
      const observed = asked.observe === undefined ? { observe: "where-possible" as const } : {}
      const requested = { ...requestOf(made.request, options), ...refused, ...observed }
      const told = { holder: held, ...(observe === undefined ? {} : { observe }) }
      return forRun(await perform(made.core, log, requested, told))
    }
    const cancel = options.signal ?? closing.signal
    return open((now) => turn.pass(() => work(now, cancel), cancel, clientOf(options.caller)))
  }
  const why = async (request: CallRequest, given: WhyOptions = {}): Promise<WhyReport> => {
    const options = readOptions("why", "why", given)
    return open((core) => turn.pass(() => explain(core, { ...requestOf(request, options), tell: () => undefined })))
  }
  /** Checked before anything is listed: what a caller is told depends on who it is. */
  const callerIn = (name: string, options: ListOptions): Caller => readOptions(name, "list", options).caller
  const ifOperator = <T>(name: string, options: ListOptions, all: () => readonly T[]): readonly T[] =>
    isOperator(callerIn(name, options)) ? all() : []

  const decide = async (id: string, answer: "approve" | "deny", options: DecideOptions = {}): Promise<Envelope> => {
    if (answer !== "approve" && answer !== "deny") throw new TypeError("decide takes `approve` or `deny`")
    const { caller, signal, reason } = readOptions("decide", "decide", options)
    const why = reason?.toWellFormed().slice(0, hostLimits.reasonChars.value)
    const cancel = signal === undefined ? closing.signal : AbortSignal.any([signal, closing.signal])
    const asked = {
      id: String(id),
      decision: answer,
      caller,
      ...(why === undefined || why === "" ? {} : { reason: why }),
    }
    return open(() =>
      turn.pass(async () => {
        await recorded.settled(asked.id)
        return await held.decide(asked, cancel)
      }, cancel),
    )
  }

  const reload = createReload({
    data,
    take: async (caller) => {
      const settings = loadConfig(data, options.config)
      const other = ground.otherIn(settings)
      if (other !== undefined) needsStart(other)
      const next = await assemble(settings, acceptAfter(generations.now.registry))
      const generation = generations.number + 1
      await log.append({
        actor: { id: caller.actor },
        action: "host.reloaded",
        subject: { kind: "host" },
        metadata: { generation, tools: next.registry.tools.length, drivers: next.registry.drivers.length },
      })
      ground.serve(next.registry)
      generations.replace(next)
      return { generation, registry: next.registry }
    },
  })

  const shutDown = async (): Promise<void> => {
    const late = setTimeout(() => closing.abort(), hostLimits.closeMs.value)
    await Promise.all(running)
    await recorded.close()
    clearTimeout(late)
    await using _rest = new AsyncDisposableStack()
    _rest.use(log)
    _rest.use(ground)
    _rest.use(generations)
    _rest.use(held)
    if (index !== undefined) _rest.use(await index)
  }
  const close = (): Promise<void> => (closed ??= shutDown())

  return Object.freeze({
    data,
    call,
    begin,
    run,
    why,
    tools: async (options: ListOptions = {}) => {
      const caller = callerIn("tools", options)
      return open((core) => turn.pass(() => listTools(core, caller)))
    },
    drivers: async (options: ListOptions = {}) => {
      const caller = callerIn("drivers", options)
      return open((core) => turn.pass(() => listDrivers(core, caller)))
    },
    diagnostics: (options: ListOptions = {}) => ifOperator("diagnostics", options, () => core.registry.diagnostics),
    unloaded: (options: ListOptions = {}) =>
      ifOperator("unloaded", options, () => core.registry.failed.flatMap(unloadedOf)),
    approvals: async (options: ListOptions = {}) => {
      const caller = callerIn("approvals", options)
      return open(() => held.list(caller))
    },
    approval: async (id: string, options: ListOptions = {}) => {
      const caller = callerIn("approval", options)
      return open(() => held.show(String(id), caller))
    },
    recorded: async (id: string, options: ListOptions = {}) => {
      const caller = callerIn("recorded", options)
      return open(() => recorded.find(String(id), caller))
    },
    calls: async (options: CallsOptions = {}) => {
      const { caller, limit } = readOptions("calls", "calls", options)
      return open(() => recorded.list(caller, Math.min(limit ?? 50, hostLimits.callsTold.value)))
    },
    tokens: tokensOf({
      store: ground.store,
      record: (draft) => log.append(draft),
      callerOf: (of, given) => readOptions("tokens", of, given).caller,
    }),
    grants: grantsOf(core, (of, given) => readOptions("grants", of, given).caller),
    questions: questionsOf(
      core,
      (of, given) => readOptions(`questions.${of}`, "list", given).caller,
      (draft) => log.append(draft),
    ),
    receipts: async (options: ReceiptsOptions = {}) => {
      const { caller, ...asked } = readOptions("receipts", "receipts", options)
      return open(() => receiptIndex().then((opened) => tellReceipts(opened, asked, caller)))
    },
    exportReceipts: async (options: ListOptions = {}) => {
      const caller = callerIn("exportReceipts", options)
      return open(async () => exportReceipts(data, caller))
    },
    decide,
    prune: async (options: ListOptions = {}) => {
      const caller = callerIn("prune", options)
      return open((core) => pruneInstalled(core, caller))
    },
    secrets: secretsOf(core, log, (options) => readOptions("secrets", "secret", options).caller),
    install: async (driver: string, options: InstallDriverOptions = {}) => {
      const { caller, signal, onProgress } = readOptions("install", "install", options)
      return open((core) =>
        installDriver(core, String(driver), caller, {
          ...(signal === undefined ? {} : { signal }),
          ...(onProgress === undefined ? {} : { tell: onProgress }),
        }),
      )
    },
    login: async (driver: string, options: LoginDriverOptions = {}) => {
      const { caller, ...rest } = readOptions("login", "login", options)
      return open((core) => loginDriver(core, String(driver), caller, rest))
    },
    logout: async (driver: string, options: LogoutDriverOptions = {}) => {
      const { caller, ...rest } = readOptions("logout", "logout", options)
      return open((core) => logoutDriver(core, String(driver), caller, rest))
    },
    auth: async (options: WorkspaceOptions = {}) => {
      const { caller, ...rest } = readOptions("auth", "workspace", options)
      return open(async (core) => {
        const logins = await listAuth(core, caller, rest)
        return "code" in logins ? { ok: false as const, error: callErrorOf(logins) } : { ok: true as const, logins }
      })
    },
    review: async (driver: string, options: ReviewOptions = {}) => {
      const { caller, accept, asks } = readOptions("review", "review", options)
      return open((core) => reviewDriver(core, log, String(driver), caller, accept, asks))
    },
    doctor: () => open(async () => (await ground.backend()).examine()),
    reload: async (options: ListOptions = {}) => {
      const caller = callerIn("reload", options)
      return open(() => reload(caller))
    },
    close,
    [Symbol.asyncDispose]: close,
  })
}
