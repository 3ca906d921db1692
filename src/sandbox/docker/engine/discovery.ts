/**
 * Where the container engine is: `DOCKER_HOST`, the chosen context, then the usual sockets of Docker and Podman.
 *
 * Guarantees: an explicit choice (`DOCKER_HOST`, `DOCKER_CONTEXT`) that does not answer is an error and never
 * silently replaced by another engine; of the usual sockets the first that answers is taken. Nothing is started.
 */
import { createHash } from "node:crypto"
import { existsSync, readFileSync } from "node:fs"
import { homedir } from "node:os"
import { join } from "node:path"
import { openEngine } from "./engine.ts"

export interface Endpoint {
  readonly origin: "given" | "DOCKER_HOST" | "context" | "socket"
  readonly socketPath?: string
  readonly tcp?: { readonly host: string; readonly port: number; readonly tls?: TlsFiles }
}
export interface TlsFiles {
  readonly ca: string
  readonly cert: string
  readonly key: string
}
export type Discovery =
  | { readonly ok: true; readonly endpoint: Endpoint }
  | { readonly ok: false; readonly message: string; readonly tried: readonly string[] }

type Environment = Readonly<Record<string, string | undefined>>

const readTls = (dir: string): TlsFiles | undefined => {
  const [ca, cert, key] = ["ca.pem", "cert.pem", "key.pem"].map((name) => join(dir, name))
  if (ca === undefined || cert === undefined || key === undefined) return undefined
  if (![ca, cert, key].every((file) => existsSync(file))) return undefined
  return { ca: readFileSync(ca, "utf8"), cert: readFileSync(cert, "utf8"), key: readFileSync(key, "utf8") }
}

/** `unix:///path` or `tcp://host:port`, as Docker's own tools spell it; undefined for anything else (ssh, npipe). */
export const parseHost = (text: string, origin: Endpoint["origin"], tls?: TlsFiles): Endpoint | undefined => {
  if (text.startsWith("unix://")) {
    const socketPath = text.slice("unix://".length)
    return socketPath.startsWith("/") ? { origin, socketPath } : undefined
  }
  if (!text.startsWith("tcp://")) return undefined
  let url: URL
  try {
    url = new URL(text)
  } catch {
    return undefined
  }
  if (url.hostname === "" || url.username !== "" || (url.pathname !== "" && url.pathname !== "/")) return undefined
  const port = url.port === "" ? (tls === undefined ? 2375 : 2376) : Number(url.port)
  return { origin, tcp: { host: url.hostname, port, ...(tls === undefined ? {} : { tls }) } }
}

const isRecord = (value: unknown): value is Record<string, unknown> => typeof value === "object" && value !== null
const readJson = (file: string): Record<string, unknown> | undefined => {
  try {
    const value: unknown = JSON.parse(readFileSync(file, "utf8"))
    return isRecord(value) ? value : undefined
  } catch {
    return undefined
  }
}

/** The endpoint of the context that the Docker command line would use; undefined for the default one. */
export const contextHost = (
  env: Environment,
  home: string,
): { readonly name: string; readonly endpoint: Endpoint | undefined } | undefined => {
  const dir = env["DOCKER_CONFIG"] ?? join(home, ".docker")
  const chosen = env["DOCKER_CONTEXT"] ?? readJson(join(dir, "config.json"))?.["currentContext"]
  if (typeof chosen !== "string" || chosen === "" || chosen === "default") return undefined
  const id = createHash("sha256").update(chosen).digest("hex")
  const endpoints = readJson(join(dir, "contexts", "meta", id, "meta.json"))?.["Endpoints"]
  const docker = isRecord(endpoints) ? endpoints["docker"] : undefined
  const host = isRecord(docker) ? docker["Host"] : undefined
  const tls = readTls(join(dir, "contexts", "tls", id, "docker"))
  return { name: chosen, endpoint: typeof host === "string" ? parseHost(host, "context", tls) : undefined }
}

const usualSockets = (env: Environment, home: string): string[] => {
  const runtime = env["XDG_RUNTIME_DIR"]
  const own = runtime === undefined ? [] : [join(runtime, "docker.sock"), join(runtime, "podman/podman.sock")]
  return [
    "/var/run/docker.sock",
    "/run/docker.sock",
    join(home, ".docker/run/docker.sock"),
    "/run/podman/podman.sock",
    ...own,
  ]
}

const ping = async (endpoint: Endpoint): Promise<string | undefined> => {
  const answer = await openEngine(endpoint).ping(3_000)
  return answer.ok ? undefined : answer.failure.message
}

export const discoverEngine = async (env: Environment = process.env, home: string = homedir()): Promise<Discovery> => {
  const explicit = env["DOCKER_HOST"]
  if (explicit !== undefined && explicit !== "") {
    const tlsDir = env["DOCKER_CERT_PATH"] ?? join(home, ".docker")
    const endpoint = parseHost(explicit, "DOCKER_HOST", env["DOCKER_TLS_VERIFY"] ? readTls(tlsDir) : undefined)
    if (endpoint === undefined)
      return { ok: false, message: `DOCKER_HOST is not unix:// or tcp://: ${explicit}`, tried: [explicit] }
    const failed = await ping(endpoint)
    return failed === undefined
      ? { ok: true, endpoint }
      : { ok: false, message: `the engine at DOCKER_HOST does not answer: ${failed}`, tried: [explicit] }
  }
  const context = contextHost(env, home)
  if (context !== undefined) {
    if (context.endpoint === undefined)
      return { ok: false, message: `context ${context.name} names no unix:// or tcp:// engine`, tried: [context.name] }
    const failed = await ping(context.endpoint)
    return failed === undefined
      ? { ok: true, endpoint: context.endpoint }
      : {
          ok: false,
          message: `the engine of context ${context.name} does not answer: ${failed}`,
          tried: [context.name],
        }
  }
  const tried = usualSockets(env, home)
  for (const socketPath of tried) {
    if (!existsSync(socketPath)) continue
    const endpoint: Endpoint = { origin: "socket", socketPath }
    if ((await ping(endpoint)) === undefined) return { ok: true, endpoint }
  }
  return { ok: false, message: "no container engine answers on the usual sockets", tried }
}
