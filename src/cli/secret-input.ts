/**
 * A secret's value from a person or a program: by a prompt that shows nothing, or from stdin; never from the command line.
 *
 * Guarantees: what is typed is not shown and stays out of the shell's history; one line's end behind it is no part of it.
 * It is in no crash dump. Bounded.
 */
import { vaultLimits } from "../host/limits.ts"
import { leaveNoCore } from "../linux/processes.ts"

type Given = { readonly ok: true; readonly value: string } | { readonly ok: false; readonly message: string }

const ENTER = /[\r\n]/
const CANCEL = ["\u0003", "\u0004"]
const ERASE = ["\u007f", "\b"]

const typed = async (prompt: string, signal: AbortSignal): Promise<Given> => {
  const { stdin } = process
  process.stderr.write(`${prompt}: `)
  stdin.setRawMode(true)
  stdin.setEncoding("utf8")
  let value = ""
  try {
    for await (const chunk of stdin.iterator({ destroyOnReturn: false }) as AsyncIterable<string>) {
      for (const key of chunk) {
        if (CANCEL.includes(key) || signal.aborted) return { ok: false, message: "nothing was set" }
        if (ENTER.test(key)) return { ok: true, value }
        if (ERASE.includes(key)) value = Array.from(value).slice(0, -1).join("")
        else value += key
        if (value.length > vaultLimits.valueBytes.value) return { ok: false, message: "that is too long for a secret" }
      }
    }
    return { ok: false, message: "nothing was set" }
  } finally {
    stdin.setRawMode(false)
    stdin.unref()
    process.stderr.write("\n")
  }
}

const piped = async (signal: AbortSignal): Promise<Given> => {
  const parts: Buffer[] = []
  let bytes = 0
  const stop = (): void => void process.stdin.destroy()
  signal.addEventListener("abort", stop, { once: true })
  for await (const chunk of process.stdin) {
    const part = Buffer.from(chunk as Buffer)
    bytes += part.length
    if (bytes > vaultLimits.valueBytes.value + 2) return { ok: false, message: "stdin holds more than a secret may" }
    parts.push(part)
  }
  return {
    ok: true,
    value: Buffer.concat(parts)
      .toString("utf8")
      .replace(/\r?\n$/, ""),
  }
}

export const givenSecret = (prompt: string, signal: AbortSignal): Promise<Given> => {
  leaveNoCore()
  return process.stdin.isTTY === true ? typed(prompt, signal) : piped(signal)
}
