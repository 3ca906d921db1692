/** The protocol's own conformance suite, fetched once from the public registry and kept with the packages. */
import { execFile } from "node:child_process"
import { existsSync, mkdirSync } from "node:fs"
import { join } from "node:path"
import { promisify } from "node:util"

const SUITE = "@modelcontextprotocol/conformance@0.2.0-alpha.12"
const run = promisify(execFile)
const root = join(import.meta.dirname, "../..")
export const suiteFolder = join(root, "node_modules/.cache/caisson-mcp-conformance-0.2.0-alpha.12")
export const suiteEntry = join(suiteFolder, "node_modules/@modelcontextprotocol/conformance/dist/index.js")

/** Undefined, or why it is not there. */
export const installSuite = async (): Promise<string | undefined> => {
  if (existsSync(suiteEntry)) return undefined
  try {
    mkdirSync(suiteFolder, { recursive: true })
    await run("npm", ["install", "--prefix", suiteFolder, "--ignore-scripts", "--no-save", "--no-audit", SUITE], {
      timeout: 120_000,
    })
    return undefined
  } catch {
    return `${SUITE} cannot be installed: run it where the public npm registry can be reached`
  }
}
