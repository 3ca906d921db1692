/** Starts the real launcher, as a user would, on a data folder of its own. */
import { mkdtempSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { execa } from "execa"
import { removeFolder } from "../support/remove-folder.ts"

export const launcher = fileURLToPath(new URL("../../bin/caisson.cjs", import.meta.url))

export interface Ended {
  readonly code: number | undefined
  readonly stdout: string
  readonly stderr: string
}

export interface RunOptions {
  /** what is undefined here is not there, whatever this process has */
  readonly env?: Readonly<Record<string, string | undefined>>
  readonly cwd?: string
  readonly input?: string
  readonly node?: string
}

export const caisson = async (args: readonly string[], options: RunOptions = {}): Promise<Ended> => {
  const ended = await execa(options.node ?? process.execPath, [launcher, ...args], {
    reject: false,
    stripFinalNewline: false,
    ...(options.env === undefined ? {} : { env: options.env }),
    ...(options.cwd === undefined ? {} : { cwd: options.cwd }),
    ...(options.input === undefined ? { stdin: "ignore" as const } : { input: options.input }),
  })
  return { code: ended.exitCode, stdout: String(ended.stdout), stderr: String(ended.stderr) }
}

/** A scratch folder with `data` (closed) and `workspace`, removed when disposed. */
export const scratch = (): Disposable & { readonly folder: string } => {
  const folder = mkdtempSync(join(tmpdir(), "caisson-cli-test-"))
  return { folder, [Symbol.dispose]: () => removeFolder(folder) }
}
