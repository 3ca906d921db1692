/**
 * The command line's entry: words in, exit code out.
 *
 * Guarantees: ends the process with a code of the interface's table, after stdout is written out whole or its reader has gone; a failure
 * nobody foresaw is exit code 5 and one line, with the stack only under `CAISSON_DEBUG`.
 */
import { readFileSync } from "node:fs"
import { CommanderError } from "commander"
import { exit } from "./exit.ts"
import { createProgram } from "./program.ts"
import { createTerminal } from "./terminal.ts"
import { says } from "./texts.ts"
import { inline, visible } from "./visible.ts"

const version = (): string => {
  const { version: text } = JSON.parse(readFileSync(new URL("../../package.json", import.meta.url), "utf8")) as {
    version: string
  }
  return text
}

const flushed = (stream: NodeJS.WriteStream): Promise<void> =>
  new Promise((resolve) => void stream.write("", () => resolve()))

const perform = async (argv: readonly string[]): Promise<number> => {
  let code: number = exit.usage
  const terminal = createTerminal()
  const program = createProgram(version(), terminal, (ended) => {
    code = ended
  })
  if (argv.length === 0) {
    program.outputHelp({ error: true })
    return exit.usage
  }
  try {
    await program.parseAsync([...argv], { from: "user" })
    return code
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? exit.ok : exit.usage
    terminal.say(`caisson: ${inline(error instanceof Error ? error.message : String(error))}`)
    if (error instanceof Error && "fix" in error) terminal.say(`fix: ${inline(String(error.fix))}`)
    if (error instanceof Error && error.message.startsWith("Cannot find package "))
      terminal.say(`fix: ${says.setUpAgain}`)
    if (process.env["CAISSON_DEBUG"] && error instanceof Error) terminal.say(visible(error.stack ?? ""))
    return exit.hostBroken
  }
}

export const main = async (argv: readonly string[]): Promise<never> => {
  // A reader that went away (`caisson tools | head -1`) is no failure of ours, and does not change how a call ended.
  process.stdout.on("error", (error: NodeJS.ErrnoException) => {
    if (error.code !== "EPIPE") process.exit(exit.hostBroken)
  })
  process.stderr.on("error", () => undefined)
  // What no boundary caught is still a broken host, not a crash of Node's with a code of its own.
  process.on("uncaughtException", (error) => {
    process.stderr.write(`caisson: ${inline(error instanceof Error ? error.message : String(error))}\n`)
    if (process.env["CAISSON_DEBUG"] && error instanceof Error) process.stderr.write(`${visible(error.stack ?? "")}\n`)
    process.exit(exit.hostBroken)
  })
  // Should the event loop run empty before a command has ended, that is no success either.
  process.exitCode = exit.hostBroken
  const code = await perform(argv)
  await flushed(process.stdout)
  await flushed(process.stderr)
  process.exit(code)
}
