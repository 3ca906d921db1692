/**
 * A driver's program talked with outside any call, as sealed as a version check: no network, no secrets, an empty folder
 * for a workspace, and nothing of what it writes is kept.
 *
 * Guarantees: as `probe.ts`: the program sees less than in a call, a machine that cannot seal it says so, so many run at
 * once and no more, and each is answered within a fixed time, waiting included.
 */
import { scratchFolder } from "../../../../data-folder/paths.ts"
import { createTurnstile } from "../../../../base/turnstile.ts"
import type { SandboxBackend, SandboxProfile } from "../../../../sandbox/backend.ts"
import { jobOf, shapeOf } from "../../../../sandbox/profile.ts"
import type { DriverContract } from "../../../../manifest/types.ts"
import type { Review, Talk, TalkRequest } from "../../../drivers/kind.ts"
import type { Failure, Success } from "../../../failure.ts"
import { tail } from "../../../invoke/stream-text.ts"
import { defaultLimits, hostLimits } from "../../../limits.ts"
import { sealEnv } from "../../sealing/env.ts"
import { converse } from "../conversing/converse.ts"
import { ProbeNotSealed } from "./probe.ts"

interface TalkHere {
  readonly data: string
  readonly backend: () => Promise<SandboxBackend>
  readonly reviewOf: (driver: DriverContract) => Review
  /** the host waits no longer */
  readonly closing: AbortSignal
}

const profileFor = ({ executables, env, startsIn }: TalkRequest): SandboxProfile => ({
  executables,
  view: { read: ["**"], deny: [] },
  write: [],
  env: sealEnv({ pass: [], set: env }, {}, false, undefined).env,
  tty: false,
  network: "none",
  limits: { ...defaultLimits, wallMs: hostLimits.talkMs.value },
  required: ["wallMs"],
  files: {},
  ...(startsIn === undefined ? {} : { startsIn }),
})

const talkOnce = async (here: TalkHere, request: TalkRequest, signal: AbortSignal): Promise<Success | Failure> => {
  const profile = profileFor(request)
  const prepared = await (await here.backend()).prepare(shapeOf(profile), signal)
  if (!prepared.ok) throw new ProbeNotSealed(prepared.message, prepared.fix)
  await using _prepared = prepared
  const job = jobOf(profile, { argv: request.argv, workspace: scratchFolder(here.data) })
  const running = await prepared.start(job, signal)
  if (!running.ok) throw new ProbeNotSealed(running.message, running.fix)
  await using _running = running
  const talked = await converse(
    running,
    { run: "conversation", argv: request.argv, files: {}, converse: request.converse },
    {
      outputBytes: profile.limits.outputBytes,
      signal,
      tell: () => undefined,
      review: here.reviewOf(request.driver),
    },
  )
  if (!talked.ok) throw new ProbeNotSealed(talked.message, talked.fix)
  await using exited = talked.exited
  if (exited.ending.by === "infrastructure") throw new ProbeNotSealed(exited.ending.message, "run `caisson doctor`")
  const { answer } = talked
  const said = tail(exited.stderr)
  return answer.ok || said === "" ? answer : { ...answer, details: { ...answer.details, stderr: said } }
}

const late: Failure = {
  ok: false,
  code: "timeout",
  message: `it was not done within ${hostLimits.probeMs.value} ms`,
  details: {},
}

export const createTalk = (here: TalkHere): Talk => {
  const turn = createTurnstile(hostLimits.concurrentProbes.value)
  return (request) =>
    new Promise((resolve, reject) => {
      const signal = AbortSignal.any([here.closing, AbortSignal.timeout(hostLimits.probeMs.value)])
      if (signal.aborted) return resolve(late)
      signal.addEventListener("abort", () => resolve(late), { once: true })
      // The place is held until the sandbox is gone, also where nobody waits for the answer any longer.
      turn.pass(async () => (signal.aborted ? late : talkOnce(here, request, signal))).then(resolve, reject)
    })
}
