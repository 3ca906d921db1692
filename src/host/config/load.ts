/**
 * Find and read the operator's config.
 *
 * Guarantees: the file is the one named, else `<data>/caisson.yaml` where it exists, else all defaults; never one from
 * a workspace. Folders of manifests that it names are there: without them, what they put first would not be. It must belong to this user or root and must not be writable by others, because it can widen policy.
 */
import { existsSync, readFileSync, realpathSync, statSync } from "node:fs"
import { dirname, resolve } from "node:path"
import { configFile } from "../../data-folder/paths.ts"
import { hostLimits } from "../limits.ts"
import { readConfig } from "./read.ts"
import { HostStartError } from "../start-error.ts"
import { defaultConfig, type OperatorConfig } from "./types.ts"

const decoder = new TextDecoder("utf-8", { fatal: true })

export const loadConfig = (data: string, named: string | undefined): OperatorConfig => {
  const wanted = named === undefined ? configFile(data) : resolve(named)
  const found = statSync(wanted, { throwIfNoEntry: false })
  if (found === undefined) {
    if (named === undefined) return defaultConfig
    throw new HostStartError(
      "not_found",
      `there is no config file ${wanted}`,
      "name a file that exists, or leave `config` out",
    )
  }
  const file = realpathSync(wanted)
  const me = process.getuid?.() ?? 0
  if (!found.isFile())
    throw new HostStartError("manifest_invalid", `${file} is not a file`, "put the config into a plain file")
  if (found.uid !== me && found.uid !== 0)
    throw new HostStartError(
      "manifest_invalid",
      `${file} belongs to another user, who could change this host's policy`,
      `chown ${me} ${file}`,
    )
  if ((found.mode & 0o022) !== 0)
    throw new HostStartError(
      "manifest_invalid",
      `${file} can be written by others, who could change this host's policy`,
      `chmod go-w ${file}`,
    )
  if (found.size > hostLimits.configBytes.value)
    throw new HostStartError(
      "manifest_invalid",
      `${file} has ${found.size} bytes; at most ${hostLimits.configBytes.value} are read`,
      "split the manifests off",
    )
  let source: string
  try {
    source = decoder.decode(readFileSync(file))
  } catch {
    throw new HostStartError("manifest_invalid", `${file} is not valid UTF-8`, "save it as UTF-8")
  }
  const read = readConfig(source, file, dirname(file))
  if (read.ok) {
    const missing = read.config.manifests.findIndex((folder) => !existsSync(folder))
    if (missing === -1) return read.config
    throw new HostStartError(
      "manifest_invalid",
      `${file}: manifests[${missing}]: there is nothing at ${read.config.manifests[missing]}`,
      "name a folder that exists (a relative one begins at the file's own folder), or take the entry out",
    )
  }
  const first = read.diagnostics[0]
  throw new HostStartError(
    "manifest_invalid",
    `${file}: ${first?.path === "" ? "" : `${first?.path}: `}${first?.message ?? "the file cannot be read"}`,
    first?.fix ?? "correct the file",
    read.diagnostics,
  )
}
