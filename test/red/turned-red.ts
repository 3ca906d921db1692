/**
 * Tests against a copy of the house with one control of its source taken out.
 *
 * Guarantees: the copy lies in a temporary folder and is removed; what runs in it runs in a process of its own. An edit
 * whose text is not there exactly once throws: a proof that proves nothing must not pass.
 */
import { spawn } from "node:child_process"
import { once } from "node:events"
import { cpSync, readdirSync, readFileSync, symlinkSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { editIn } from "../escape/controls-off.ts"
import { removeFolder, temporaryFolder } from "../support/sealed.ts"
import type { LoginControl } from "./login-controls.ts"

const repository = fileURLToPath(new URL("../..", import.meta.url))
const left = new Set([".git", "node_modules", "dist"])

interface Report {
  readonly testResults: readonly {
    readonly message: string
    readonly assertionResults: readonly { readonly fullName: string; readonly status: string }[]
  }[]
}

/** Of the tests that it must turn red, those that did not. */
export const stillGreen = async (control: LoginControl): Promise<readonly string[]> => {
  const folder = temporaryFolder("weakened")
  try {
    for (const name of readdirSync(repository))
      if (!left.has(name)) cpSync(join(repository, name), join(folder, name), { recursive: true })
    symlinkSync(join(repository, "node_modules"), join(folder, "node_modules"))
    editIn(join(folder, "src"), control)
    const report = join(folder, "report.json")
    const vitest = join(repository, "node_modules/vitest/vitest.mjs")
    const args = ["run", "--configLoader=native", "--retry=0", "--reporter=json", `--outputFile=${report}`]
    const child = spawn(process.execPath, [vitest, ...args, join("test", control.file)], {
      cwd: folder,
      stdio: "ignore",
    })
    await once(child, "close")
    const { testResults } = JSON.parse(readFileSync(report, "utf8")) as Report
    const ran = testResults.flatMap(({ assertionResults }) => assertionResults)
    if (ran.every(({ status }) => status !== "passed" && status !== "failed"))
      throw new Error(`"${control.name}": nothing ran: ${testResults.map(({ message }) => message).join()}`)
    const red = ran.filter(({ status }) => status === "failed").map(({ fullName }) => fullName)
    return control.reddens.filter((part) => !red.some((name) => name.includes(part)))
  } finally {
    removeFolder(folder)
  }
}

/** Parts of names that no test of its file has. */
export const unnamed = ({ file, written = file, reddens }: LoginControl): readonly string[] => {
  const text = readFileSync(join(repository, "test", written), "utf8")
  return reddens.filter((part) => !text.includes(part))
}
