/**
 * A part of an installation, as sealed as a call: no secret, no workspace of anybody's, the registry's hosts alone or none.
 *
 * Guarantees: it works on a folder of the installation's own and sees neither home nor data; what it wrote is put there
 * only where it exited well, nothing of it is refused, and what it was fed is what was vouched for. A machine that cannot
 * seal it says so instead of running it. Hosts that it was kept from are named. So many run at once and no more.
 */
import { explainDenial } from "../../../../egress-proxy/policy/explain.ts"
import type { CollectedSandbox, Denial, Ending, SandboxProfile } from "../../../../sandbox/backend.ts"
import { collect } from "../../../../sandbox/collect.ts"
import { jobOf, shapeOf } from "../../../../sandbox/profile.ts"
import { createTurnstile } from "../../../../base/turnstile.ts"
import type { OperatorConfig } from "../../../config/types.ts"
import { mismatched } from "../../../install/failures.ts"
import type { Build, BuildRequest, InstallFailure } from "../../../install/types.ts"
import { readingFrom } from "../../sealing/network.ts"
import { tail } from "../../../invoke/stream-text.ts"
import { hostLimits, installLimits } from "../../../limits.ts"
import type { HostCore, ServedEgress } from "../../core.ts"
import { sealEnv } from "../../sealing/env.ts"
import { channelFor } from "../../sealing/network.ts"
import { notEnforced } from "../../sealing/not-enforced.ts"
import { createHash } from "node:crypto"
import { once } from "node:events"
import { constants, createReadStream } from "node:fs"
import type { Readable, Writable } from "node:stream"

type Core = Pick<HostCore, "config" | "backend" | "egressProxy">

const profileFor = (
  { executables, env, egress, home, startsScratch }: BuildRequest,
  { diskBytes, wallMs }: OperatorConfig["install"],
): SandboxProfile => {
  const network = egress.length === 0 ? "none" : channelFor(egress)
  const sealed = sealEnv({ pass: [], set: env }, {}, false, network === "none" ? undefined : network.proxyPort).env
  const { memoryBytes, pids, outputBytes, openFiles } = installLimits
  return {
    executables,
    view: { read: ["**"], deny: [] },
    write: ["**"],
    env: home === undefined ? sealed : { ...sealed, HOME: home },
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
    ...(startsScratch === true ? { startsScratch } : {}),
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

const failureOf = (
  { ending, stderr, stdout, denied }: CollectedSandbox,
  { name, explain }: BuildRequest,
  proxy: ServedEgress | undefined,
): InstallFailure => {
  if (ending.by === "cancelled")
    return { ok: false, code: "cancelled", message: "the installation was cancelled", details: {} }
  if (ending.by === "infrastructure")
    return { ok: false, code: "internal", message: `the sandbox broke: ${ending.message}`, details: {} }
  const row = ({ reason, target, count }: Denial) => ({ reason, target, count, ...explainDenial({ reason, target }) })
  const most = hostLimits.unreachable.value
  const stopped = [...(proxy?.denials() ?? []), ...denied.filter(({ layer }) => layer === "egress")]
    .slice(0, most)
    .map(row)
  const unreachable = (proxy?.failures() ?? []).slice(0, most).map(row)
  const [first] = [...stopped, ...unreachable]
  const said = tail(stderr.bytes.length === 0 ? stdout : stderr)
  const word = ending.by === "exit" ? explain?.(said) : undefined
  const why = [first?.message, word?.message ?? endedBy(ending)].filter((each) => each !== undefined).join("; ")
  return {
    ok: false,
    code: "install_failed",
    message: `${name} could not install it: ${why}`,
    hint:
      stopped.length > 0
        ? "a package that comes from elsewhere than its registry is not fetched; an operator can name the host in `install.hosts`"
        : "read `details.stderr`; the registry is set by `install` in caisson.yaml",
    details: {
      ...(stopped.length === 0 ? {} : { denied: stopped }),
      ...(unreachable.length === 0 ? {} : { unreachable }),
      ...(word?.final === true ? { reason: "hash_mismatch" } : {}),
      stderr: said,
    },
    ...(word?.final === true ? { final: true as const } : {}),
  }
}

/** The file's bytes as the program's input; answers the digest of what was read, all of it, whoever stopped listening. */
const feed = async (stdin: Writable, path: string): Promise<string> => {
  const hash = createHash("sha256")
  const file = createReadStream(path, { flags: constants.O_RDONLY | constants.O_NOFOLLOW } as object)
  let isHeard = true
  stdin.on("error", () => (isHeard = false))
  for await (const bytes of file as AsyncIterable<Buffer>) {
    hash.update(bytes)
    if (isHeard && !stdin.write(bytes)) await Promise.race([once(stdin, "drain"), once(stdin, "close")]).catch(() => {})
  }
  stdin.end()
  return hash.digest("hex")
}

const buildOnce = async (core: Core, request: BuildRequest, signal: AbortSignal): ReturnType<Build> => {
  await using scope = new AsyncDisposableStack()
  const profile = profileFor(request, core.config.install)
  const prepared = await (await core.backend()).prepare(shapeOf(profile), signal)
  if (!prepared.ok) return notEnforced(prepared)
  scope.use(prepared)
  const proxy =
    profile.network === "none" ? undefined : scope.use(await core.egressProxy(readingFrom(core, request.egress)))
  if (prepared.channel !== "none") proxy?.serve(prepared.channel)
  const files = { ...request.files, ...proxy?.files }
  const job = jobOf(profile, { argv: request.argv, workspace: request.folder, files })
  const running = await prepared.start(job, signal)
  if (!running.ok) return notEnforced(running)
  scope.use(running)
  const { line, input } = request
  if (line !== undefined) for (const stream of [running.stdout, running.stderr]) linesOf(stream, line)
  const fed = input === undefined ? undefined : feed(running.stdin, input.file)
  fed?.catch(() => undefined)
  const { outputBytes } = profile.limits
  const exited = await collect(running, { ...(input === undefined ? { stdin: new Uint8Array() } : {}), outputBytes })
  if (!exited.ok)
    return exited.control === "write-set"
      ? { ok: false, code: "install_failed", message: exited.message, hint: exited.fix, details: {} }
      : notEnforced(exited)
  scope.use(exited)
  if (exited.ending.by !== "exit" || exited.ending.code !== 0) return failureOf(exited, request, proxy)
  const found = await fed
  if (input !== undefined && found !== input.sha256)
    return mismatched("the file was changed between its check and its use", {
      expected: input.sha256,
      found: found ?? "",
    })
  const wrong = request.accept(exited.writes)
  if (wrong !== undefined)
    return {
      ok: false,
      code: "install_failed",
      message: `what ${request.name} wrote is refused: ${wrong}`,
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
