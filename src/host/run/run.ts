/**
 * A request to run → the call that it is, and the host that it is made with.
 *
 * Guarantees: whoever is not the operator is refused; what cannot be meant is refused before anything runs. Every refusal
 * is an end of the call itself, so that it leaves a receipt as any does.
 */
import { shown } from "../../manifest/values/diagnostics.ts"
import { isOperator } from "../access/caller.ts"
import type { Caller } from "../access/caller.ts"
import type { HostCore } from "../call/core.ts"
import { systemFolders } from "../drivers/program/program.ts"
import type { Failure } from "../failure.ts"
import type { CallRequest, RunOptions, RunRequest } from "../types.ts"
import { coreFor, RUN } from "./contract.ts"
import { findCommand } from "./program.ts"
import { readRun } from "./request.ts"

interface MadeRun {
  readonly request: CallRequest
  readonly core: HostCore
  /** why it is not run; the request then stands for the attempt */
  readonly refused?: Failure
}

const notOperator: Failure = {
  ok: false,
  code: "unauthorised",
  message: "only the host's operator may run commands without a manifest",
  hint: "make a call of a tool that is registered",
  details: {},
}

const noSuchProgram = (name: string): Failure => ({
  ok: false,
  code: "not_found",
  message: `--exec ${shown(name)}: there is no such program in ${systemFolders.join(", ")}`,
  hint: "install it there, or leave it out",
  details: { field: "exec" },
})

const made = (core: HostCore, request: RunRequest, caller: Caller, options: RunOptions): HostCore | Failure => {
  if (!isOperator(caller)) return notOperator
  const read = readRun(request)
  if (!read.ok) return read
  const { command } = read.value
  const absent = read.value.exec.find((name) => core.findProgram(name) === undefined)
  if (absent !== undefined) return noSuchProgram(absent)
  const found = findCommand(command[0], typeof request.workspace === "string" ? request.workspace : ".")
  if ("ok" in found) return found
  const { attachment, stdin } = options
  const run = coreFor(core, read.value, {
    name: command[0],
    program: found.program,
    script: found.script,
    args: command.slice(1),
    ...(attachment === undefined ? {} : { attachment }),
    ...(stdin === undefined ? {} : { stdin }),
  })
  return run.ok ? run.core : run
}

export const makeRun = (core: HostCore, request: RunRequest, caller: Caller, options: RunOptions): MadeRun => {
  const run = made(core, request, caller, options)
  const { command, workspace, plan, observe } = request
  const asked: CallRequest = {
    tool: RUN,
    input: { command: Array.isArray(command) ? command.map(String) : [] },
    ...(workspace === undefined ? {} : { workspace }),
    ...(plan === undefined ? {} : { plan }),
    ...(observe === true ? { observe } : {}),
  }
  return "ok" in run ? { request: asked, core, refused: run } : { request: asked, core: run }
}
