/**
 * How each package manager is told to install, and what came of it is laid out. Pure but for looking for programs.
 *
 * Guarantees: no script of a package runs: npm is told to ignore them, and there is no shell in the build to run one;
 * pip takes wheels alone, which have none. No file of the machine's or a user's configures either. Nothing is asked of
 * a person. npm compares each archive with the checksum that its registry gives, pip with the one in its index.
 */
import type { OperatorConfig } from "../config/types.ts"
import { findNode, findNpm, findPython, type FoundInterpreter, type Interpreter } from "./interpreters.ts"
import type { Registry } from "./registries.ts"
import type { BuildRequest, InstallSource } from "./types.ts"

type Command = Pick<BuildRequest, "executables" | "argv" | "env">
type FoundCommand =
  | { readonly ok: true; readonly value: Command }
  | { readonly ok: false; readonly reason: string; readonly fix: string }

/** Where a layer is seen inside, and what of it holds programs and packages. */
export const layouts: Readonly<
  Record<InstallSource, { readonly inside: string; readonly packages: string; readonly programs: string }>
> = {
  npm: { inside: "/opt/installed/npm", packages: "node_modules", programs: "node_modules/.bin" },
  pip: { inside: "/opt/installed/pip", packages: "site", programs: "site/bin" },
  local: { inside: "/opt/installed/local", packages: "", programs: "node_modules/.bin" },
}

const WORKSPACE = "/workspace"
const CERTIFICATES = "/etc/ssl/certs/ca-certificates.crt"

export const languageFor = (source: "npm" | "pip", config: OperatorConfig): FoundInterpreter =>
  source === "npm" ? findNode(config) : findPython(config)

const run = (
  { program, inside, bundles }: Interpreter,
  more: Readonly<Record<string, string>>,
  argv: string[],
  env = {},
) => ({
  executables: { program, children: true, spawn: {}, bundles: { ...bundles, ...more } },
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

export const commandFor = (
  source: "npm" | "pip",
  interpreter: Interpreter,
  registry: Registry,
  requirements: readonly string[],
): FoundCommand => (source === "npm" ? npmCommand : pipCommand)(interpreter, registry, requirements)

/** A line of a manager's output that tells of a file that came from the registry. */
export const tellsOfFetch = (line: string): boolean => /^npm http fetch GET 200 |^\s*Downloading /.test(line)
