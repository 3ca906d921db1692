/**
 * A driver's version check, run as sealed as a call: no network, no secrets, an empty folder for a workspace, the same
 * for all, and nothing of what it writes is kept.
 *
 * Guarantees: the program sees less than in a call, never more. A machine that cannot seal it says so instead of
 * running it. So many run at once and no more, and each is answered within a fixed time, waiting included.
 */
import { scratchFolder } from "../../../../data-folder/paths.ts"
import type { SandboxBackend, SandboxProfile } from "../../../../sandbox/backend.ts"
import { runOnce } from "../../../../sandbox/collect.ts"
import { jobOf, shapeOf } from "../../../../sandbox/profile.ts"
import { defaultLimits, hostLimits } from "../../../limits.ts"
import type { Probe, ProbeRequest, ProbeResult } from "../../../drivers/program/version-check.ts"
import { createTurnstile } from "../../../../base/turnstile.ts"
import { bundlesOf, insidePath, interpretersOf } from "../../../drivers/program/programs.ts"
import { sealEnv } from "../../sealing/env.ts"

const profileFor = ({ program, spawn, timeoutMs, env, children }: ProbeRequest): SandboxProfile => {
  const others = Object.entries(spawn)
  const programs: Record<string, string> = {}
  for (const each of [program, ...others.map(([, other]) => other)]) Object.assign(programs, interpretersOf(each))
  for (const [name, other] of others) programs[name] = other.bundle === undefined ? other.found : other.path
  const brought = [program, ...others.map(([, other]) => other)].find(({ bundle }) => bundle !== undefined)
  return {
    executables: {
      program: program.bundle === undefined ? program.found : program.path,
      children: others.length > 0 || children,
      spawn: programs,
      bundles: brought === undefined ? {} : bundlesOf(brought),
    },
    view: { read: ["**"], deny: [] },
    write: [],
    env: sealEnv({ pass: [], set: { ...env, ...brought?.env } }, {}, false, undefined).env,
    tty: false,
    network: "none",
    limits: { ...defaultLimits, wallMs: timeoutMs },
    required: ["wallMs"],
    files: {},
  }
}

/** Thrown where the machine cannot seal a probe: a matter of the host, not of the driver's program. */
export class ProbeNotSealed extends Error {
  readonly fix: string
  constructor(message: string, fix: string) {
    super(message)
    this.fix = fix
  }
}

const probeOnce = async (
  data: string,
  backend: () => Promise<SandboxBackend>,
  request: ProbeRequest,
  signal: AbortSignal,
): Promise<ProbeResult> => {
  const profile = profileFor(request)
  const prepared = await (await backend()).prepare(shapeOf(profile), signal)
  if (!prepared.ok) throw new ProbeNotSealed(prepared.message, prepared.fix)
  await using _prepared = prepared
  const argv = [insidePath(request.program), ...request.argv.slice(1)]
  const { outputBytes } = profile.limits
  const output = { stdin: new Uint8Array(), outputBytes }
  const exited = await runOnce(prepared, jobOf(profile, { argv, workspace: scratchFolder(data) }), output, signal)
  if (!exited.ok) throw new ProbeNotSealed(exited.message, exited.fix)
  await using _exited = exited
  if (exited.ending.by === "infrastructure") throw new ProbeNotSealed(exited.ending.message, "run `caisson doctor`")
  const decode = (bytes: Uint8Array): string => Buffer.from(bytes).toString("utf8")
  return {
    ran: true,
    exit: exited.ending.by === "exit" ? exited.ending.code : null,
    stdout: decode(exited.stdout.bytes),
    stderr: decode(exited.stderr.bytes),
  }
}

const late: ProbeResult = {
  ran: false,
  reason: `it was not done within ${hostLimits.probeMs.value} ms`,
  fix: "try again when the machine is less busy",
}

/** `closing`: the host waits no longer. */
export const createProbe = (data: string, backend: () => Promise<SandboxBackend>, closing: AbortSignal): Probe => {
  const turn = createTurnstile(hostLimits.concurrentProbes.value)
  return (request) =>
    new Promise((resolve, reject) => {
      const signal = AbortSignal.any([closing, AbortSignal.timeout(hostLimits.probeMs.value)])
      if (signal.aborted) return resolve(late)
      signal.addEventListener("abort", () => resolve(late), { once: true })
      // The place is held until the sandbox is gone, also where nobody waits for the answer any longer.
      turn.pass(async () => (signal.aborted ? late : probeOnce(data, backend, request, signal))).then(resolve, reject)
    })
}
