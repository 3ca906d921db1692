/**
 * How each package manager is told to install, and what came of it is laid out. Pure but for looking for programs.
 *
 * Guarantees: no script of a package of npm or pip runs: npm is told to ignore them, and there is no shell in the build to
 * run one; pip takes wheels alone, which have none. cargo and go compile, and what a crate's own build script does happens
 * in the sandbox like all the rest. No file of the machine's or a user's configures any of them. Nothing is asked of a
 * person. Each compares what it fetched with the checksum that its registry gives.
 */
import { statSync } from "node:fs"
import { dirname, join } from "node:path"
import type { OperatorConfig } from "../config/types.ts"
import { findNode, findNpm, findPython, type FoundInterpreter, type Interpreter } from "./interpreters.ts"
import type { Registry } from "./registries.ts"
import { findCargo, findGo } from "./toolchains.ts"
import type { BuildRequest } from "./types.ts"

type Command = Pick<BuildRequest, "executables" | "argv" | "env" | "startsScratch">
type FoundCommand =
  | { readonly ok: true; readonly value: Command }
  | { readonly ok: false; readonly reason: string; readonly fix: string }

const WORKSPACE = "/workspace"
const CERTIFICATES = "/etc/ssl/certs/ca-certificates.crt"

type Manager = "npm" | "pip" | "cargo" | "go"

const LANGUAGES: Readonly<Record<Manager, (config: OperatorConfig) => FoundInterpreter>> = {
  npm: findNode,
  pip: findPython,
  cargo: findCargo,
  go: findGo,
}

export const languageFor = (source: Manager, config: OperatorConfig): FoundInterpreter => LANGUAGES[source](config)

const run = (
  { program, inside, bundles, spawn = {} }: Interpreter,
  more: Readonly<Record<string, string>>,
  argv: string[],
  env = {},
) => ({
  executables: { program, children: true, spawn, bundles: { ...bundles, ...more } },
  argv: [inside, ...argv],
  env,
})

const npmCommand = (node: Interpreter, registry: Registry, requirements: readonly string[]): FoundCommand => {
  const npm = findNpm(node.program)
  if (npm === undefined)
    return {
      ok: false,
      reason: "there is no npm on this machine",
      fix: "install npm, for instance by `apt-get install npm`",
    }
  const settings = {
    prefix: WORKSPACE,
    registry: registry.url,
    cache: "/tmp/npm",
    userconfig: "/tmp/no-user-config",
    globalconfig: "/tmp/no-global-config",
    loglevel: "http",
    omit: "dev",
    "fetch-retries": "1",
    "fetch-retry-mintimeout": "1000",
    "fetch-retry-maxtimeout": "5000",
    "fetch-timeout": "60000",
  }
  const off = ["audit", "fund", "update-notifier", "progress", "color", "save", "package-lock", "workspaces"]
  const argv = [
    npm.inside,
    "install",
    "--ignore-scripts",
    ...Object.entries(settings).map(([name, value]) => `--${name}=${value}`),
    ...off.map((name) => `--no-${name}`),
    "--",
    ...requirements,
  ]
  return { ok: true, value: run(node, npm.bundles, argv, { NODE_USE_SYSTEM_CA: "1" }) }
}

const pipCommand = (python: Interpreter, registry: Registry, requirements: readonly string[]): FoundCommand => {
  const argv = [
    ...[
      "-I",
      "-m",
      "pip",
      "install",
      "--isolated",
      "--no-input",
      "--disable-pip-version-check",
      "--no-cache-dir",
      "--retries",
      "1",
    ],
    ...["--progress-bar", "off", "--no-color", "--only-binary", ":all:", "--target", `${WORKSPACE}/site`],
    ...["--index-url", registry.url, "--cert", CERTIFICATES],
    ...(registry.plain === undefined ? [] : ["--trusted-host", registry.plain]),
    "--",
    ...requirements,
  ]
  // Compiled files that hold a digest of their source, not its time, which freezing does not keep.
  return { ok: true, value: run(python, {}, argv, { SOURCE_DATE_EPOCH: "315532800" }) }
}

/** `name@version` as two words. */
const parted = (requirement: string): readonly [name: string, version: string | undefined] => {
  const at = requirement.indexOf("@")
  return at < 0 ? [requirement, undefined] : [requirement.slice(0, at), requirement.slice(at + 1)]
}

const onlyOne = (manager: string): FoundCommand => ({
  ok: false,
  reason: `${manager} installs one package at a time`,
  fix: "name one package a method",
})

const cargoCommand = (cargo: Interpreter, registry: Registry, requirements: readonly string[]): FoundCommand => {
  const [requirement = "", ...others] = requirements
  if (others.length > 0) return onlyOne("cargo")
  const [name, version] = parted(requirement)
  const argv = [
    "install",
    ...["--root", WORKSPACE, "--target-dir", "/tmp/target", "--color", "never"],
    ...(registry.isPublic
      ? []
      : [
          ...["--config", 'source.crates-io.replace-with="operator"'],
          ...["--config", `source.operator.registry="sparse+${registry.url}"`],
        ]),
    ...(version === undefined ? [] : ["--version", version]),
    "--",
    name,
  ]
  const env = {
    CARGO_HOME: "/tmp/cargo",
    CARGO_HTTP_CAINFO: CERTIFICATES,
    CARGO_HTTP_MULTIPLEXING: "false",
    CARGO_NET_RETRY: "1",
    RUSTC: join(dirname(cargo.inside), "rustc"),
  }
  return { ok: true, value: { ...run(cargo, {}, argv, env), startsScratch: true } }
}

const GO_FILES = "/opt/goproxy"

const goCommand = (
  go: Interpreter,
  { url, folder, isPublic }: Registry,
  requirements: readonly string[],
): FoundCommand => {
  const [requirement = "", ...others] = requirements
  if (others.length > 0) return onlyOne("go")
  if (folder !== undefined && statSync(folder, { throwIfNoEntry: false })?.isDirectory() !== true)
    return { ok: false, reason: `${folder} is no folder`, fix: "correct `install.go_proxy` in caisson.yaml" }
  if (folder !== undefined && process.getuid?.() === 0 && (statSync(folder).mode & 0o005) !== 0o005)
    return {
      ok: false,
      reason: `others may not read ${folder}, as a sandbox of root's is`,
      fix: `run \`chmod -R o+rX ${folder}\``,
    }
  const [name, version = "latest"] = parted(requirement)
  const env = {
    GOPROXY: folder === undefined ? url : `file://${GO_FILES}`,
    // Its checksum database is served through the public proxy; who runs another one vouches for what it serves.
    GOSUMDB: isPublic ? "sum.golang.org" : "off",
    GOFLAGS: "-modcacherw",
    GOTOOLCHAIN: "local",
    GOENV: "off",
    CGO_ENABLED: "0",
    GOBIN: `${WORKSPACE}/bin`,
    GOPATH: "/tmp/go",
    GOCACHE: "/tmp/go-cache",
    SSL_CERT_FILE: CERTIFICATES,
  }
  const shown = folder === undefined ? {} : { [folder]: GO_FILES }
  return { ok: true, value: run(go, shown, ["install", `${name}@${version}`], env) }
}

const COMMANDS: Readonly<
  Record<Manager, (language: Interpreter, registry: Registry, requirements: readonly string[]) => FoundCommand>
> = { npm: npmCommand, pip: pipCommand, cargo: cargoCommand, go: goCommand }

export const commandFor = (
  source: Manager,
  language: Interpreter,
  registry: Registry,
  requirements: readonly string[],
): FoundCommand => COMMANDS[source](language, registry, requirements)

/** A line of a manager's output that tells of a file that came from the registry. */
export const tellsOfFetch = (line: string): boolean =>
  /^npm http fetch GET 200 |^\s*Download(?:ing|ed) |^go: downloading |^Get:\d+ /.test(line)

/** What each says of a file that is not what its registry says. */
const MISMATCH =
  /EINTEGRITY|DO NOT MATCH THE HASHES|failed to verify the checksum|checksum mismatch|SECURITY ERROR|Hash Sum mismatch/

export const saysMismatch = (said: string): { readonly message: string; readonly final: true } | undefined =>
  MISMATCH.test(said)
    ? { message: "a file is not the one that its registry gives the checksum of", final: true }
    : undefined
