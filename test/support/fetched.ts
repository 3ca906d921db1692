/** Programs of other makers that tests drive, fetched once from the public registries and kept with the packages. */
import { execFile } from "node:child_process"
import { existsSync, mkdirSync, rmSync } from "node:fs"
import { join } from "node:path"
import { promisify } from "node:util"

const run = promisify(execFile)
const cache = join(import.meta.dirname, "../../node_modules/.cache")

export interface Fetched {
  readonly folder: string
  /** the file that is run or imported */
  readonly entry: string
  /** why it is not there */
  readonly missing?: string
}

const fetched = async (
  what: string,
  entry: string,
  folder: string,
  registry: string,
  fetch: () => Promise<unknown>,
): Promise<Fetched> => {
  if (existsSync(entry)) return { folder, entry }
  try {
    mkdirSync(folder, { recursive: true })
    await fetch()
    return { folder, entry }
  } catch {
    rmSync(folder, { recursive: true, force: true })
    return { folder, entry, missing: `${what} cannot be installed: run it where ${registry} can be reached` }
  }
}

/** `entry`: its file, below the package. */
export const fetchFromNpm = (name: string, version: string, entry: string): Promise<Fetched> => {
  const folder = join(cache, `caisson-${name.replaceAll(/[^a-z-]/g, "-")}-${version}`)
  const spec = `${name}@${version}`
  const words = ["install", "--prefix", folder, "--ignore-scripts", "--no-save", "--no-audit", spec]
  return fetched(spec, join(folder, "node_modules", name, entry), folder, "the public npm registry", () =>
    run("npm", words, { timeout: 240_000 }),
  )
}

/** A Python of its own, with the packages. */
export const fetchFromPyPI = (name: string, version: string): Promise<Fetched> => {
  const folder = join(cache, `caisson-pypi-${name}-${version}`)
  const python = join(folder, "bin/python")
  return fetched(`${name}==${version}`, python, folder, "PyPI", async () => {
    await run("python3", ["-m", "venv", folder], { timeout: 120_000 })
    await run(python, ["-m", "pip", "install", "-q", `${name}==${version}`], { timeout: 240_000 })
  })
}
