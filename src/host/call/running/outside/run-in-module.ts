/**
 * One function of a driver's module, run as sealed as a version check: no network, no secrets, an empty folder for a
 * workspace, and nothing of what it writes is kept.
 *
 * Guarantees: settles within its time whatever the module does; a machine that cannot seal it says so instead of running
 * it. So many run at once and no more. What comes back is the module's own word.
 */
import { dirname } from "node:path"
import { createTurnstile } from "../../../../base/turnstile.ts"
import { scratchFolder } from "../../../../data-folder/paths.ts"
import type { Ending, SandboxBackend, SandboxProfile } from "../../../../sandbox/backend.ts"
import { jobOf, shapeOf } from "../../../../sandbox/profile.ts"
import type { OperatorConfig } from "../../../config/types.ts"
import { inside } from "../../../drivers/paths.ts"
import { findInterpreter, type Interpreter } from "../../../drivers/runner/interpreter.ts"
import type { ModuleAnswer, ModuleRun, RunInModule } from "../../../drivers/runner/run-in-module.ts"
import { type ModuleSpec, shimArgv, shimFiles } from "../../../drivers/runner/request.ts"
import { type RunnerAnswer, talk } from "../../../drivers/runner/talk.ts"
import type { Failure, Success } from "../../../failure.ts"
import { tail } from "../../../invoke/stream-text.ts"
import { defaultLimits, hostLimits } from "../../../limits.ts"
import { sealEnv } from "../../sealing/env.ts"
import { converse } from "../conversing/converse.ts"

const profileFor = ({ interpreter, bundles, env = {}, timeoutMs, image }: ModuleRun): SandboxProfile => ({
  executables: {
    program: interpreter.program,
    children: false,
    spawn: interpreter.spawn,
    bundles: { ...bundles, ...interpreter.bundles },
    ...(image === undefined ? {} : { image }),
  },
  view: { read: ["**"], deny: [] },
  write: [],
  env: sealEnv({ pass: [], set: env }, {}, false, undefined).env,
  tty: false,
  privatePipes: true,
  network: "none",
  limits: { ...defaultLimits, wallMs: timeoutMs ?? hostLimits.moduleMs.value },
  required: ["wallMs"],
  files: {},
})

const endedBy = (ending: Ending): string | undefined => {
  if (ending.by === "limit") return `it hit the limit ${ending.limit}`
  if (ending.by === "cancelled") return "it was cancelled"
  if (ending.by === "exec-denied") return "it started another program"
  return ending.by === "infrastructure" ? ending.message : undefined
}

const runOnce = async (
  data: string,
  backend: () => Promise<SandboxBackend>,
  run: ModuleRun,
  signal: AbortSignal,
): Promise<ModuleAnswer> => {
  const { interpreter, request, onEvent = () => undefined } = run
  const profile = profileFor(run)
  const prepared = await (await backend()).prepare(shapeOf(profile), signal)
  if (!prepared.ok) return { ok: false, kind: "unsealed", message: prepared.message, fix: prepared.fix }
  await using _prepared = prepared
  const argv = shimArgv(interpreter.language, interpreter.inside)
  const files = { ...shimFiles(interpreter.language), ...run.files }
  const running = await prepared.start(jobOf(profile, { argv, workspace: scratchFolder(data), files }), signal)
  if (!running.ok) return { ok: false, kind: "unsealed", message: running.message, fix: running.fix }
  await using _running = running
  let answer: RunnerAnswer = { ok: false, kind: "silent", message: "it ended without an answer" }
  const answered: Success | Failure = { ok: true, value: null, notes: [] }
  const talked = await converse(
    running,
    {
      run: "conversation",
      argv,
      files,
      converse: async (session) => {
        answer = await talk({ session, request, onEvent })
        return answered
      },
    },
    { outputBytes: profile.limits.outputBytes, signal, tell: () => undefined },
  )
  if (!talked.ok) return { ok: false, kind: "unsealed", message: talked.message, fix: talked.fix }
  await using exited = talked.exited
  const stderr = tail(exited.stderr)
  const said = stderr === "" ? {} : { stderr }
  const ended = endedBy(exited.ending)
  if (ended !== undefined) return { ok: false, kind: "ended", message: ended, ...said }
  return { ...answer, ...said }
}

/** `closing`: the host waits no longer. */
export const createModuleRunner = (
  data: string,
  backend: () => Promise<SandboxBackend>,
  closing: AbortSignal,
): RunInModule => {
  const turn = createTurnstile(hostLimits.concurrentProbes.value)
  return (run, signal) => {
    const cancel = signal === undefined ? closing : AbortSignal.any([closing, signal])
    return turn.pass(async () =>
      cancel.aborted ? { ok: false, kind: "ended", message: "it was cancelled" } : runOnce(data, backend, run, cancel),
    )
  }
}

/** The module of a file in a driver's folder, with what runs it. */
type ModuleInFolder =
  | {
      readonly ok: true
      readonly module: ModuleSpec
      readonly interpreter: Interpreter
      readonly bundles: Readonly<Record<string, string>>
    }
  | { readonly ok: false; readonly reason: string; readonly fix: string }

/** `file`: absolute, on the host; its folder, or `folder` above it, is what the module sees. */
export const moduleInFolder = (
  config: Pick<OperatorConfig, "interpreters">,
  file: string,
  folder: string = dirname(file),
): ModuleInFolder => {
  const language = file.endsWith(".py") ? "python" : "node"
  const shown = { folder, inside: inside.bundle }
  const found = findInterpreter(language, [shown], config)
  if (!found.ok) return found
  return {
    ok: true,
    module: {
      path: `${inside.bundle}/${file.slice(folder.length + 1)}`,
      ...(file.endsWith(".cjs") ? { style: "cjs" } : {}),
    },
    interpreter: found.interpreter,
    bundles: { [folder]: inside.bundle },
  }
}
