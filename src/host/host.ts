/**
 * The embedded host: registry, sandbox, evidence and the calls between them, in one process.
 *
 * Guarantees: creating one needs no sandbox and starts nothing; the backend starts with the first thing that must be
 * sealed. Calls may run side by side. `close` waits for calls under way, cancels those that take too long, and leaves
 * no process, socket or lock. Of calls that a killed host left open, receipts are written before the first call here.
 */
import { fileURLToPath } from "node:url"
import { type Caller, isOperator } from "./access/caller.ts"
import { explain } from "./questions/explain.ts"
import { listDrivers, listTools } from "./questions/listing.ts"
import { perform } from "./call/perform.ts"
import { unlessCancelled } from "./call/running/cancelled.ts"
import type { Requested } from "./call/steps.ts"
import { loadConfig } from "./config/load.ts"
import { HostStartError, startFailure } from "./start-error.ts"
import { openCore } from "./assemble/core.ts"
import { sortedManifests } from "./assemble/definitions.ts"
import { readBuiltins } from "./drivers/embedded/functions.ts"
import { dataFolderOf, openDataFolder } from "./data/folder.ts"
import { createUlids } from "./data/ulid.ts"
import { callErrorOf } from "./failure.ts"
import { brokenManifest } from "./registry/broken.ts"
import { HeldCalls } from "./held/held-calls.ts"
import { installDriver } from "./lifecycle/install-driver.ts"
import { pruneInstalled } from "./lifecycle/prune-installed.ts"
import { secretsOf } from "./lifecycle/keep-secrets.ts"
import { reviewDriver } from "./lifecycle/review-driver.ts"
import { hostLimits } from "./limits.ts"
import { readOptions } from "./options.ts"
import type { ReasonCode } from "./reasons.ts"
import { closeAbandonedCalls } from "./receipts/open-calls.ts"
import { openAuditLog } from "./receipts/log.ts"
import type { FailedManifest } from "./registry/types.ts"
import { createTurnstile } from "../base/turnstile.ts"
import { unknownKey } from "./unknown-key.ts"
import type {
  CallOptions,
  CallRequest,
  DecideOptions,
  Envelope,
  Host,
  HostOptions,
  InstallDriverOptions,
  ListOptions,
  ReviewOptions,
  UnloadedListing,
  WhyOptions,
  WhyReport,
} from "./types.ts"

const OPTIONS: readonly (keyof HostOptions)[] = ["data", "manifests", "builtins", "backend", "warm", "config"]

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
    return await openHost(openDataFolder(folder), options)
  } catch (error) {
    throw startFailure(error, folder)
  }
}

/** Options of a call, read. */
type Called = CallOptions & { readonly caller: Caller }

const openHost = async (data: string, options: HostOptions): Promise<Host> => {
  const config = loadConfig(data, options.config)
  const closing = new AbortController()
  const core = await openCore({
    data,
    config,
    catalogue,
    ...sortedManifests(options.manifests ?? []),
    builtins: readBuiltins(options.builtins),
    warm: options.warm ?? false,
    closing: closing.signal,
    ...(options.backend === undefined ? {} : { backend: options.backend }),
  })
  const log = openAuditLog(data)
  const nextId = createUlids()
  const turn = createTurnstile(hostLimits.concurrentCalls.value)
  const running = new Set<Promise<unknown>>()
  let closed: Promise<void> | undefined
  let abandoned: Promise<unknown> | undefined

  const held = new HeldCalls(core, log, closing.signal)
  const requestOf = (request: CallRequest, options: Called): Omit<Requested, "tell"> => {
    const { caller, approve, elicit, approved = false, unreadable, signal } = options
    return {
      call: nextId(),
      // Read once and whole, whatever it is; what is no request has no tool.
      request: { ...request },
      caller,
      approved,
      ...(approve === undefined ? {} : { ask: approve }),
      ...(elicit === undefined ? {} : { elicit }),
      ...(unreadable === undefined ? {} : { unreadable }),
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
  const open = <T>(work: () => Promise<T>): Promise<T> =>
    closed === undefined ? track(work()) : Promise.reject(new Error("this host is closed"))

  /** Held calls first: a call that was held has its receipt from there. */
  const tidyUp = async (): Promise<void> => {
    await held.tend().catch(() => undefined)
    await closeAbandonedCalls(data, log).catch(() => undefined)
  }
  const call = async (request: CallRequest, given: CallOptions = {}): Promise<Envelope> => {
    const options = readOptions("call", "call", given)
    return open(() => {
      const requested = requestOf(request, options)
      return turn.pass(async () => {
        abandoned ??= tidyUp()
        await unlessCancelled(abandoned, requested.signal)
        const { onEvent: observe } = options
        return perform(core, log, requested, {
          holder: held,
          ...(observe === undefined ? {} : { observe }),
        })
      }, requested.signal)
    })
  }
  const why = async (request: CallRequest, given: WhyOptions = {}): Promise<WhyReport> => {
    const options = readOptions("why", "why", given)
    return open(() => turn.pass(() => explain(core, { ...requestOf(request, options), tell: () => undefined })))
  }
  /** Checked before anything is listed: what a caller is told depends on who it is. */
  const callerIn = (name: string, options: ListOptions): Caller => readOptions(name, "list", options).caller
  const ifOperator = <T>(name: string, options: ListOptions, all: () => readonly T[]): readonly T[] =>
    isOperator(callerIn(name, options)) ? all() : []

  const decide = async (id: string, answer: "approve" | "deny", options: DecideOptions = {}): Promise<Envelope> => {
    if (answer !== "approve" && answer !== "deny") throw new TypeError("decide takes `approve` or `deny`")
    const { caller, signal } = readOptions("decide", "decide", options)
    const cancel = signal === undefined ? closing.signal : AbortSignal.any([signal, closing.signal])
    return open(() => turn.pass(() => held.decide(String(id), answer, caller, cancel), cancel))
  }

  const shutDown = async (): Promise<void> => {
    const late = setTimeout(() => closing.abort(), hostLimits.closeMs.value)
    await Promise.all(running)
    clearTimeout(late)
    await using _rest = new AsyncDisposableStack()
    _rest.use(log)
    _rest.use(core)
    _rest.use(held)
  }
  const close = (): Promise<void> => (closed ??= shutDown())

  return Object.freeze({
    data,
    call,
    why,
    tools: async (options: ListOptions = {}) => {
      const caller = callerIn("tools", options)
      return open(() => turn.pass(() => listTools(core, caller)))
    },
    drivers: async (options: ListOptions = {}) => {
      const caller = callerIn("drivers", options)
      return open(() => turn.pass(() => listDrivers(core, caller)))
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
    decide,
    prune: async (options: ListOptions = {}) => {
      const caller = callerIn("prune", options)
      return open(() => pruneInstalled(core, caller))
    },
    secrets: secretsOf(core, (options) => readOptions("secrets", "secret", options).caller),
    install: async (driver: string, options: InstallDriverOptions = {}) => {
      const { caller, signal, onProgress } = readOptions("install", "install", options)
      return open(() =>
        installDriver(core, String(driver), caller, {
          ...(signal === undefined ? {} : { signal }),
          ...(onProgress === undefined ? {} : { tell: onProgress }),
        }),
      )
    },
    review: async (driver: string, options: ReviewOptions = {}) => {
      const { caller, accept } = readOptions("review", "review", options)
      return open(() => reviewDriver(core, log, String(driver), caller, accept))
    },
    doctor: () => open(async () => (await core.backend()).examine()),
    close,
    [Symbol.asyncDispose]: close,
  })
}
