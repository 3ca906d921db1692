/**
 * Kind cli (AIP-29): one program, started once for each call, without a shell.
 *
 * Guarantees: what it needs is what its manifest declares for the tool; the command line is built from compiled
 * templates; how the program ended and what it wrote is read by the driver's own rules.
 */
import type { CliSpec, DriverContract, OutputFormat } from "../../../manifest/types.ts"
import type { Failure, Success } from "../../failure.ts"
import type { Answer, DriverKindModule, KindCall, KindCommand, KindResult, Needs } from "../kind.ts"
import { expirySign, withSign } from "../expiry.ts"
import type { Program } from "../program/program.ts"
import { executablesFor, insidePath } from "../program/programs.ts"
import { unreadablePattern } from "../unreadable-pattern.ts"
import { bind } from "./bind.ts"
import { exitWord } from "./exit-code.ts"
import { outputFormat, withJsonFlag } from "./format.ts"
import { available, packagesOf } from "./locate.ts"
import { interpretOutput } from "./output.ts"
import { expandArgv, expandStdin } from "./template.ts"

const specOf = ({ id, body }: DriverContract): CliSpec => {
  if (body.kind !== "cli") throw new TypeError(`${id} is of kind ${body.kind}, not cli`)
  return body.cli
}

const programOf = ({ driver, program }: KindCall): Answer<Program> =>
  program === undefined
    ? {
        ok: false,
        code: "tool_unavailable",
        message: `the program behind ${driver.key} is not there`,
        details: { driver: driver.key },
      }
    : { ok: true, value: program }

const needs: DriverKindModule["needs"] = (call, findProgram) => {
  const program = programOf(call)
  if (!program.ok) return program
  const { contract } = call.driver
  const { cli } = call.binding.implementation
  const sandbox = cli?.sandbox ?? specOf(contract).sandbox
  const { executables, absent } = executablesFor(findProgram, program.value, sandbox.exec)
  const value: Needs = {
    executables,
    fs: sandbox.fs,
    env: { ...sandbox.env, set: { ...sandbox.env.set, ...program.value.env } },
    egress: cli?.egress ?? contract.egress,
    tty: sandbox.tty.required,
    notes: absent.length === 0 ? [] : [`exec.spawn names programs that are not on this machine: ${absent.join(", ")}`],
  }
  return { ok: true, value }
}

const read = (call: KindCall, format: OutputFormat, result: KindResult): Success | Failure => {
  const { tool, driver, binding } = call
  const { key, contract } = driver
  const outcome = interpretOutput({ tool, driver: contract, implementation: binding.implementation, format }, result)
  const { exitCode } = result
  if (outcome.ok) return outcome
  const sign = expirySign(contract.auth, { exitCode, mapped: exitWord(contract, exitCode) })
  return withSign(outcome, sign, `${key} is no longer signed in (exit ${exitCode})`)
}

const command = (call: KindCall): Answer<KindCommand> => {
  const program = programOf(call)
  if (!program.ok) return program
  const { binding, tool, input, context } = call
  const { binArgs, output } = specOf(call.driver.contract)
  const values = { input, context }
  const expanded = binding.cli === undefined ? { ok: true as const, argv: [] } : expandArgv(binding.cli.argv, values)
  if (!expanded.ok) return expanded
  const stdin =
    binding.cli?.stdin === undefined
      ? { ok: true as const, bytes: new Uint8Array() }
      : expandStdin(binding.cli.stdin, values)
  if (!stdin.ok) return stdin
  const format = outputFormat(output, binding.implementation.cli, tool.outputs)
  const positionalFrom = binding.cli?.argv.positionalFrom ?? Number.POSITIVE_INFINITY
  const own = withJsonFlag(expanded.argv, output, format, positionalFrom)
  const argv = [insidePath(program.value), ...binArgs, ...own]
  return {
    ok: true,
    value: { run: "program", argv, stdin: stdin.bytes, format, read: (result) => read(call, format, result) },
  }
}

export const cliKind: DriverKindModule = {
  kind: "cli",
  bringsTransforms: false,
  remedies: () => ({
    write: "declare the path in `mutates` of the tool and in `sandbox.fs.write` of the driver, or fix the tool",
    exec: "set `sandbox.exec.allow: true` in the driver and list the program in `exec.spawn`, or fix the tool",
  }),
  bind: (driver, index, tool, implementation) => bind(driver, specOf(driver), index, tool, implementation),
  unenforceable: (driver) =>
    unreadablePattern(driver, [
      specOf(driver).sandbox,
      ...driver.implements.flatMap((entry) => entry.cli?.sandbox ?? []),
    ]),
  available: (driver, here) => available(driver, specOf(driver), here),
  packages: (driver, wanted) => packagesOf(driver, specOf(driver), wanted),
  needs,
  command,
  outline: ({ driver, binding, program }) => [
    program?.name ?? specOf(driver.contract).bin,
    ...specOf(driver.contract).binArgs,
    ...(binding.implementation.cli?.argv ?? []),
  ],
  evidence: ({ binding }, made) => ({
    argv_template: [...(binding.implementation.cli?.argv ?? [])],
    ...(made.run === "hosted" ? {} : { argv_count: made.argv.length }),
  }),
}
