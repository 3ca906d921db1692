/**
 * Where a driver's server is: a program of this machine or of the driver's folder or package, or the program of an npm
 * package, which runs on the host's own Node, or what an image starts.
 *
 * Guarantees: nothing is run or installed; what a package calls its program is a file inside that package.
 */
import { readFileSync } from "node:fs"
import path from "node:path"
import type { DriverContract, McpServer, McpSpec } from "../../../manifest/types.ts"
import { isReasonCode } from "../../failure.ts"
import type { FrozenLayer, InstallSpec } from "../../install/types.ts"
import { installFix } from "../program/install-fix.ts"
import { locateInstalled, methodsOf } from "../program/installed.ts"
import type { DriverAvailability, Surroundings, WantedPackages } from "../kind.ts"
import { type Located, locateSystemProgram, locateVendoredProgram, systemFolders } from "../program/program.ts"
import { findInterpreter } from "../runner/interpreter.ts"
import { type FoundServer, sandboxOf, type StartedServer } from "./server.ts"

type NpmServer = Extract<McpServer, { kind: "npm" }>
type BinaryServer = Extract<McpServer, { kind: "binary" }>
type DockerServer = Extract<McpServer, { kind: "docker" }>
type Found =
  | { readonly ok: true; readonly found: FoundServer; readonly edition: string }
  | { readonly ok: false; readonly answer: DriverAvailability }

const missing = (reason: string, fix: string): Found => ({
  ok: false,
  answer: { available: false, code: "tool_unavailable", reason, fix },
})

const packageFor = ({ name, version }: NpmServer): InstallSpec => ({
  source: "npm",
  packages: [{ name, ...(version === undefined ? {} : { version }) }],
})

const atHand = (driver: DriverContract, file: string, folders: readonly string[]): Located =>
  file.includes("/") && !path.isAbsolute(file)
    ? locateVendoredProgram(file, path.dirname(driver.source.file), folders)
    : locateSystemProgram(file, folders)

/** What has to be installed for it: nothing where the program is on this machine, or comes along. */
export const packagesOf = (
  driver: DriverContract,
  server: McpServer,
  { prefer, atHandToo = false }: WantedPackages,
): readonly InstallSpec[] => {
  if (server.kind === "npm") return [packageFor(server)]
  if (server.kind !== "binary" || server.path.includes("/")) return []
  const methods = methodsOf(driver, server.path)
  if (methods === undefined) return []
  const wanted = atHandToo || (prefer === "layer" && methods.specs.length > 0)
  return wanted || !atHand(driver, server.path, systemFolders).ok ? [methods] : []
}

/** The one program that a package brings, or the one that is called as the package is. */
const scriptOf = (name: string, layer: FrozenLayer): string | undefined => {
  const folder = layer.entry(name)
  if (folder === undefined) return undefined
  const { bin } = JSON.parse(readFileSync(path.join(folder.host, "package.json"), "utf8")) as { bin?: unknown }
  const own = name.slice(name.indexOf("/") + 1)
  const named = typeof bin === "object" && bin !== null ? (bin as Record<string, unknown>) : { [own]: bin }
  const files = Object.values(named)
  const file = Object.hasOwn(named, own) ? named[own] : files.length === 1 ? files[0] : undefined
  if (typeof file !== "string") return undefined
  const inside = path.posix.normalize(file)
  return inside.startsWith("..") || path.posix.isAbsolute(inside) ? undefined : path.posix.join(folder.inside, inside)
}

const inPackage = async (driver: DriverContract, server: NpmServer, here: Surroundings): Promise<Found> => {
  const spec = packageFor(server)
  const installed = await here.installs.find(spec)
  if (!installed.ok) {
    if (installed.details["installed"] === false && here.mayInstall)
      return { ok: false, answer: { available: true, install: [spec] } }
    const { code, message, hint = "run `caisson install DRIVER`" } = installed
    const fix = hint.replace("DRIVER", driver.id)
    return {
      ok: false,
      answer: { available: false, code: isReasonCode(code) ? code : "install_failed", reason: message, fix },
    }
  }
  const layer = installed.value
  const script = scriptOf(server.name, layer)
  if (script === undefined)
    return missing(
      `its package \`${server.name}\` brings no program of that name`,
      "name a package that is an MCP server",
    )
  const node = findInterpreter("node", [], here)
  if (!node.ok) return missing(node.reason, node.fix)
  const version = layer.packages.find(({ name }) => name === server.name)?.version
  return {
    ok: true,
    found: {
      module: {
        module: { path: script },
        interpreter: node.interpreter,
        bundles: layer.bundles,
        edition: layer.digest,
        ...(version === undefined ? {} : { version }),
      },
    },
    edition: layer.digest,
  }
}

const asProgram = async (driver: DriverContract, server: BinaryServer, here: Surroundings): Promise<Found> => {
  const first = atHand(driver, server.path, here.folders)
  const methods = server.path.includes("/") ? undefined : methodsOf(driver, server.path)
  const isLayered = methods !== undefined && methods.specs.length > 0 && (!first.ok || here.prefer === "layer")
  const located = isLayered ? await locateInstalled(driver, methods, server.path, here) : first
  if ("available" in located) return { ok: false, answer: located }
  if (!located.ok) return missing(located.reason, installFix(driver))
  const { program } = located
  return { ok: true, found: { program }, edition: JSON.stringify([program.path, program.identity]) }
}

/** Never by the machine's own docker: what the image starts is started in a sandbox of this host's. */
const inImage = async (spec: McpSpec, server: DockerServer, here: Surroundings): Promise<Found> => {
  const { exec } = sandboxOf(spec, undefined)
  const { image, args } = server
  const asked = await here.imageProgram({ image, args, spawn: exec.allow ? exec.spawn : [] })
  if (!asked.ok)
    return {
      ok: false,
      answer: { available: false, code: "sandbox_unavailable", reason: asked.message, fix: asked.fix },
    }
  return { ok: true, found: { image: asked.value }, edition: JSON.stringify([asked.value.image, asked.value.argv]) }
}

export const locate = (
  driver: DriverContract,
  spec: McpSpec,
  server: StartedServer,
  here: Surroundings,
): Promise<Found> => {
  switch (server.kind) {
    case "npm":
      return inPackage(driver, server, here)
    case "docker":
      return inImage(spec, server, here)
    default:
      return asProgram(driver, server, here)
  }
}
