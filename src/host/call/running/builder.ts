/**
 * A package manager's run, as sealed as a call: no secret, no workspace of anybody's, the registry's hosts alone.
 *
 * Guarantees: it works on an empty folder and sees neither home nor data; what it wrote is put there only where it
 * exited well and nothing of it is refused. A machine that cannot seal it says so instead of running it. Hosts that it
 * was kept from are named. So many run at once and no more.
 */
import { explainDenial } from "../../../egress-proxy/policy/explain.ts"
import type { CollectedSandbox, Denial, Ending, SandboxProfile } from "../../../sandbox/backend.ts"
import { collect } from "../../../sandbox/collect.ts"
import { jobOf, shapeOf } from "../../../sandbox/profile.ts"
import { createTurnstile } from "../../../base/turnstile.ts"
import type { OperatorConfig } from "../../config/types.ts"
import type { Failure } from "../../failure.ts"
import type { Build, BuildRequest } from "../../install/types.ts"
import { tail } from "../../invoke/stream-text.ts"
import { egressBudgets, hostLimits, installLimits } from "../../limits.ts"
import type { HostCore, ServedEgress } from "../core.ts"
import { sealEnv } from "../sealing/env.ts"
import { channelFor } from "../sealing/network.ts"
import { notEnforced } from "../sealing/not-enforced.ts"
import type { Readable } from "node:stream"

type Core = Pick<HostCore, "config" | "backend" | "egressProxy">

const profileFor = (
  { executables, env, egress }: BuildRequest,
  { diskBytes, wallMs }: OperatorConfig["install"],
): SandboxProfile => {
  const network = channelFor(egress)
  const { memoryBytes, pids, outputBytes, openFiles } = installLimits
  return {
    executables,
    view: { read: ["**"], deny: [] },
    write: ["**"],
    env: sealEnv({ pass: [], set: env }, {}, false, network.proxyPort).env,
    tty: false,
    network,
    limits: {
      wallMs,
      memoryBytes: memoryBytes.value,
      pids: pids.value,
      diskBytes,
      outputBytes: outputBytes.value,
      openFiles: openFiles.value,
    },
    required: ["wallMs"],
    files: {},
  }
}

const LONGEST_LINE = 4096

/** Whole lines of what it prints, as they come; of one without an end, the beginning. */
const linesOf = (stream: Readable, hear: (line: string) => void): void => {
  let rest = ""
  stream.on("data", (bytes: Uint8Array) => {
    const lines = (rest + Buffer.from(bytes).toString("utf8")).split("\n")
    rest = (lines.pop() ?? "").slice(0, LONGEST_LINE)
    for (const line of lines) hear(line)
  })
}

const LIMITS: Readonly<Record<Extract<Ending, { by: "limit" }>["limit"], string>> = {
  wall: "took longer than `install.wall_ms` lets it",
  memory: "used more memory than it may",
  pids: "had more processes than it may",
  cpu: "used more processor time than it may",
  disk: "wrote more than `install.disk_mb` lets it",
  output: "printed more than it may",
}

const endedBy = (ending: Ending): string => {
  if (ending.by === "limit") return `it ${LIMITS[ending.limit]}`
  if (ending.by === "signal") return `it was ended by ${ending.signal}`
  if (ending.by === "exit") return `it exited with ${ending.code}`
  return "it tried to start a program that it may not"
}

const failureOf = ({ ending, stderr, stdout, denied }: CollectedSandbox, proxy: ServedEgress): Failure => {
  if (ending.by === "cancelled")
    return { ok: false, code: "cancelled", message: "the installation was cancelled", details: {} }
  if (ending.by === "infrastructure")
    return { ok: false, code: "internal", message: `the sandbox broke: ${ending.message}`, details: {} }
  const row = ({ reason, target, count }: Denial) => ({ reason, target, count, ...explainDenial({ reason, target }) })
  const most = hostLimits.unreachable.value
  const stopped = [...proxy.denials(), ...denied.filter(({ layer }) => layer === "egress")].slice(0, most).map(row)
  const unreachable = proxy.failures().slice(0, most).map(row)
  const [first] = [...stopped, ...unreachable]
  return {
    ok: false,
    code: "install_failed",
    message: `the package manager could not install it: ${first === undefined ? "" : `${first.message}; `}${endedBy(ending)}`,
    hint:
      stopped.length > 0
        ? "a package that comes from elsewhere than its registry is not fetched; an operator can name the host in `install.hosts`"
        : "read `details.stderr`; the registry is set by `install` in caisson.yaml",
    details: {
      ...(stopped.length === 0 ? {} : { denied: stopped }),
      ...(unreachable.length === 0 ? {} : { unreachable }),
      stderr: tail(stderr.bytes.length === 0 ? stdout : stderr),
    },
  }
}

const buildOnce = async (core: Core, request: BuildRequest, signal: AbortSignal): ReturnType<Build> => {
  await using scope = new AsyncDisposableStack()
  const profile = profileFor(request, core.config.install)
  const prepared = await (await core.backend()).prepare(shapeOf(profile), signal)
  if (!prepared.ok) return notEnforced(prepared)
  scope.use(prepared)
  if (prepared.channel === "none") throw new Error("a sandbox with a network was made without its channel")
  const { services, private: granted } = core.config.egress
  const proxy = scope.use(
    await core.egressProxy({
      entries: request.egress,
      services,
      private: granted,
      budgets: egressBudgets,
      readOnlyHttp: "enforce",
      substitutions: [],
    }),
  )
  proxy.serve(prepared.channel)
  const job = jobOf(profile, { argv: request.argv, workspace: request.folder, files: proxy.files })
  const running = await prepared.start(job, signal)
  if (!running.ok) return notEnforced(running)
  scope.use(running)
  linesOf(running.stdout, request.line)
  linesOf(running.stderr, request.line)
  const exited = await collect(running, { stdin: new Uint8Array(), outputBytes: profile.limits.outputBytes })
  if (!exited.ok)
    return exited.control === "write-set"
      ? { ok: false, code: "install_failed", message: exited.message, hint: exited.fix, details: {} }
      : notEnforced(exited)
  scope.use(exited)
  if (exited.ending.by !== "exit" || exited.ending.code !== 0) return failureOf(exited, proxy)
  const wrong = request.accept(exited.writes)
  if (wrong !== undefined)
    return {
      ok: false,
      code: "install_failed",
      message: `what the package manager wrote is refused: ${wrong}`,
      hint: "use another version or another package",
      details: {},
    }
  const committed = await exited.commit(signal)
  if (committed.ok) return { ok: true, value: undefined }
  const why = committed.reason === "conflict" ? "its folder was changed by somebody else" : committed.message
  return { ok: false, code: "install_failed", message: `what was installed could not be kept: ${why}`, details: {} }
}

export const createBuilder = (core: Core): Build => {
  const turn = createTurnstile(hostLimits.concurrentProbes.value)
  return (request, signal) => turn.pass(() => buildOnce(core, request, signal))
}
