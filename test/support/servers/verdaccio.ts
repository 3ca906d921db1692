/**
 * Verdaccio, unmodified, from the registry that this machine has: installed once into the packages' own cache folder.
 *
 * Guarantees: undefined folder with the reason where it cannot be had; scripts of packages are not run.
 */
import { spawnSync } from "node:child_process"
import { existsSync, mkdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { type Running, startServer } from "./process.ts"

const version = "6.10.4"
const folder = fileURLToPath(new URL(`../../../node_modules/.cache/verdaccio-${version}`, import.meta.url))
const program = join(folder, "node_modules/verdaccio/bin/verdaccio")

/** Why it is not there, or undefined when it is. */
export const ensureVerdaccio = (): string | undefined => {
  if (existsSync(program)) return undefined
  mkdirSync(folder, { recursive: true })
  // It asks for a tag of node-fetch, which a registry may not have beside the versions.
  const wanted = { private: true, dependencies: { verdaccio: version }, overrides: { "node-fetch": "2.7.0" } }
  writeFileSync(join(folder, "package.json"), JSON.stringify(wanted))
  const installed = spawnSync("npm", ["install", "--ignore-scripts", "--no-audit", "--no-fund"], {
    cwd: folder,
    encoding: "utf8",
    timeout: 300_000,
  })
  if (installed.status === 0 && existsSync(program)) return undefined
  return `verdaccio ${version} could not be installed from npm's registry: ${installed.stderr?.trim().split("\n").at(-1) ?? installed.error?.message}`
}

/** Readable and writable by everybody, but for `@locked/*`. */
export const startVerdaccio = (): Promise<Running> =>
  startServer({
    name: "verdaccio",
    command: (port, at) => {
      const config = {
        storage: join(at, "storage"),
        auth: { htpasswd: { file: join(at, "htpasswd") } },
        packages: {
          "@locked/*": { access: "$authenticated", publish: "$authenticated" },
          "**": { access: "$all", publish: "$all" },
        },
        log: { type: "stdout", format: "json", level: "error" },
      }
      writeFileSync(join(at, "config.yaml"), JSON.stringify(config))
      return [process.execPath, program, "--config", join(at, "config.yaml"), "--listen", `127.0.0.1:${port}`]
    },
  })
