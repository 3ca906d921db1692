/**
 * The modules of `amplifier` in caisson.yaml, looked into and registered.
 *
 * Guarantees: each is mounted in a sandbox without network, secrets or workspace, once for each edition of it, of its
 * config and of our own shim; what it answered is kept in the data folder. One that cannot be mounted is reported with
 * its reason, and takes nothing else down. A module whose folder holds what is this host's own is not shown to any tool.
 */
import { createHash } from "node:crypto"
import {
  mkdirSync,
  readdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs"
import { homedir } from "node:os"
import { dirname, join, sep } from "node:path"
import { mountedFolder } from "../../data-folder/paths.ts"
import type { DefinedManifest } from "../../manifest/read/defined.ts"
import type { Diagnostic, DriverContract, JsonObject, JsonValue, LoadResult } from "../../manifest/types.ts"
import type { OperatorConfig } from "../config/types.ts"
import { amplifierFiles } from "../drivers/amplifier/asked.ts"
import { type Discovered, discoverTools } from "../drivers/amplifier/discover.ts"
import { editionOf, moduleAt } from "../drivers/amplifier/module-at.ts"
import { shimFiles } from "../drivers/runner/request.ts"
import type { FoundModule } from "../drivers/runner/found-module.ts"
import type { RunInModule } from "../drivers/runner/run-in-module.ts"
import { isObject } from "../invoke/schema-path.ts"
import { hostLimits } from "../limits.ts"
import { driverIdOf, manifestsOf, type Placed } from "./amplifier-manifests.ts"

export interface Amplified {
  readonly manifests: readonly DefinedManifest[]
  /** of modules that could not be mounted, or whose tools could not be taken */
  readonly problems: readonly LoadResult[]
  readonly diagnostics: readonly Diagnostic[]
  /** what each driver's module mounted */
  tools(driver: DriverContract): Discovered | undefined
}

const holds = (folder: string, path: string): boolean => path === folder || path.startsWith(`${folder}${sep}`)

/** Its folder is shown to its tools, and so to whatever asks them. */
const exposed = (path: string, data: string, config: OperatorConfig): string | undefined => {
  let folder: string
  try {
    folder = dirname(realpathSync(path))
  } catch {
    return undefined
  }
  const own = [data, ...(config.file === undefined ? [] : [config.file]), homedir()]
  if (own.some((each) => holds(folder, each)))
    return "its folder is shown to its tools, and it holds this host's own files or a person's home"
  return undefined
}

const keyOf = (found: FoundModule, path: string, config: JsonObject): string | undefined => {
  const edition = editionOf(path)
  if (edition === undefined) return undefined
  const hash = createHash("sha256")
  const { program } = found.interpreter
  const facts = statSync(program, { throwIfNoEntry: false })
  hash.update(JSON.stringify([path, edition, config, program, facts?.ino, facts?.mtimeMs, facts?.ctimeMs]))
  for (const [name, bytes] of Object.entries({ ...shimFiles("python"), ...amplifierFiles() }))
    hash.update(name).update(bytes)
  return hash.digest("hex")
}

const isTool = (value: JsonValue): boolean =>
  isObject(value) && typeof value["name"] === "string" && typeof value["description"] === "string"

const readKnown = (file: string): Discovered | undefined => {
  try {
    const read: JsonValue = JSON.parse(readFileSync(file, "utf8")) as JsonValue
    if (!isObject(read) || read["ok"] !== true || !Array.isArray(read["tools"]) || !read["tools"].every(isTool))
      return undefined
    return read as unknown as Discovered
  } catch {
    return undefined
  }
}

/** Not remembering costs the next start some time, never a call. */
const keep = (folder: string, key: string, found: Discovered): void => {
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 })
    const temporary = join(folder, `${key}.${process.pid}.new`)
    writeFileSync(temporary, JSON.stringify(found), { mode: 0o600 })
    renameSync(temporary, join(folder, key))
    const kept = readdirSync(folder)
      .map((name) => ({ name, at: statSync(join(folder, name), { throwIfNoEntry: false })?.mtimeMs ?? 0 }))
      .sort((a, b) => b.at - a.at)
    for (const { name } of kept.slice(hostLimits.mountedModules.value)) rmSync(join(folder, name), { force: true })
  } catch {
    // As above.
  }
}

const lookInto = async (
  { module: { path, config = {} } }: Placed,
  data: string,
  config_: OperatorConfig,
  runInModule: RunInModule,
): Promise<Discovered> => {
  const cannot = (reason: string, fix: string): Discovered => ({ ok: false, sealed: true, reason, fix })
  const shows = exposed(path, data, config_)
  if (shows !== undefined) return cannot(shows, "put the module into a folder of its own")
  const at = moduleAt(path, config_)
  if (!at.ok) return cannot(at.reason, at.fix)
  const key = keyOf(at.found, path, config)
  const folder = mountedFolder(data)
  const known = key === undefined ? undefined : readKnown(join(folder, key))
  if (known !== undefined) return known
  const found = await discoverTools(at.found, config, runInModule).catch((error: unknown): Discovered => {
    // A backend that cannot be made: whatever is not sealed does not run, and the host is there all the same.
    const reason = error instanceof Error ? error.message : String(error)
    return { ok: false, sealed: false, reason, fix: "run `caisson doctor`" }
  })
  if (found.ok && key !== undefined) keep(folder, key, found)
  return found
}

const problemOf = ({ module, file, index }: Placed, reason: string, fix: string): LoadResult => {
  const said: Diagnostic = {
    severity: "error",
    rule: "amplifier-module",
    file,
    path: `amplifier[${index}].module`,
    message: `${module.module}: ${reason}`,
    fix,
  }
  const claims = { id: driverIdOf(module), tools: Object.values(module.tools ?? {}).flatMap(({ id }) => id ?? []) }
  return { ok: false, file: `${module.path}#mount`, kind: "driver", diagnostics: [said], claims }
}

export const amplify = async (data: string, config: OperatorConfig, runInModule: RunInModule): Promise<Amplified> => {
  const file = config.file ?? "caisson.yaml"
  const placed = config.amplifier.map((module, index): Placed => ({ module, index, file }))
  const found = await Promise.all(
    placed.map(async (each) => ({ each, told: await lookInto(each, data, config, runInModule) })),
  )
  const taken = new Set<string>()
  const manifests: DefinedManifest[] = []
  const problems: LoadResult[] = []
  const diagnostics: Diagnostic[] = []
  const byFile = new Map<string, Discovered>()
  for (const { each, told } of found) {
    if (!told.ok) {
      problems.push(problemOf(each, told.reason, told.fix))
      continue
    }
    const made = manifestsOf(each, told.tools, taken)
    manifests.push(...made.manifests)
    diagnostics.push(...made.diagnostics)
    for (const note of told.notes)
      diagnostics.push({
        severity: "warning",
        rule: "amplifier-module",
        file,
        path: `amplifier[${each.index}].module`,
        message: note,
        fix: "mend the module",
      })
    if (!made.manifests.some(({ doctype }) => doctype === "driver"))
      problems.push(problemOf(each, "it mounts no tool that can be taken", "let its `mount` register one"))
    byFile.set(`${each.module.path}#mount`, told)
  }
  return { manifests, problems, diagnostics, tools: (driver) => byFile.get(driver.source.file) }
}
