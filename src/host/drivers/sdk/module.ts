/**
 * Where an sdk driver's module is, on this machine and inside, and what runs it.
 *
 * Guarantees: it lies in the driver's own folder, or in a frozen layer of the packages that the driver names, in a version
 * that it takes; what no manager of this host brings is refused by name. Does not: load or install anything.
 */
import { existsSync, statSync } from "node:fs"
import { dirname, join } from "node:path"
import validRange from "semver/ranges/valid.js"
import { satisfies } from "../../../manifest/schema/version.ts"
import type { DriverContract, SdkSpec } from "../../../manifest/types.ts"
import { isReasonCode } from "../../failure.ts"
import type { FrozenLayer, InstallSpec, PackageRequest } from "../../install/types.ts"
import type { DriverAvailability, Surroundings } from "../kind.ts"
import { inside } from "../paths.ts"
import type { FoundModule } from "../runner/found-module.ts"
import { findInterpreter } from "../runner/interpreter.ts"
import type { ModuleSpec, RunnerLanguage } from "../runner/request.ts"

type Found =
  | { readonly ok: true; readonly found: FoundModule }
  | { readonly ok: false; readonly answer: DriverAvailability }

const refuse = (
  reason: string,
  fix: string,
  code: "tool_unavailable" | "version_mismatch" = "tool_unavailable",
): Found => ({
  ok: false,
  answer: { available: false, code, reason, fix },
})

const STYLES: Readonly<Record<SdkSpec["importStyle"], RunnerLanguage | undefined>> = {
  esm: "node",
  cjs: "node",
  python: "python",
  "rust-crate": undefined,
  "go-module": undefined,
}

/** `^1.2` → `>=1.2.0,<2.0.0`, as pip writes it; undefined where it has no such form, and the version is looked at later. */
const pipRange = (range: string): string | undefined => {
  const plain = validRange(range) ?? ""
  if (plain === "" || plain === "*" || plain.includes("||")) return undefined
  return plain
    .split(" ")
    .map((part) => part.replace(/-0$/, ""))
    .map((part) => (/^\d/.test(part) ? `==${part}` : part))
    .join(",")
}

const requestFor = (spec: SdkSpec, source: "npm" | "pip", range: string | undefined): PackageRequest => {
  const version = range === undefined ? undefined : source === "pip" ? pipRange(range) : range
  return { name: spec.package, ...(version === undefined ? {} : { version }) }
}

/** The versions that the driver takes. */
const rangeOf = ({ versionCheck }: DriverContract, { packageVersion }: SdkSpec): string | undefined =>
  packageVersion ?? versionCheck?.range

/** What has to be installed for it: nothing where it comes along. */
export const packagesOf = (driver: DriverContract, spec: SdkSpec): readonly InstallSpec[] => {
  const { packageManager: source } = spec
  if (source !== "npm" && source !== "pip") return []
  return [{ source, packages: [requestFor(spec, source, rangeOf(driver, spec))] }]
}

const isFile = (path: string): boolean => statSync(path, { throwIfNoEntry: false })?.isFile() === true

const style = ({ importStyle }: SdkSpec): { style?: "esm" | "cjs" } =>
  importStyle === "esm" || importStyle === "cjs" ? { style: importStyle } : {}

/** The module in the driver's folder: a file or folder by its path, or a package that lies in `node_modules`. */
const localModule = (folder: string, spec: SdkSpec, language: RunnerLanguage): ModuleSpec | undefined => {
  const { package: name, entrypoint } = spec
  const file = join(name, entrypoint ?? "")
  const entry = entrypoint === undefined ? {} : { entry: entrypoint }
  if (isFile(join(folder, file))) return { path: join(inside.bundle, file), ...style(spec) }
  if (language === "python") {
    const isThere = existsSync(join(folder, name)) || isFile(join(folder, `${name}.py`))
    const paths = [inside.bundle, join(inside.bundle, name)]
    return isThere ? { name: name.replaceAll("/", "."), ...entry, from: inside.bundle, paths } : undefined
  }
  if (existsSync(join(folder, file))) return { path: join(inside.bundle, file), ...style(spec) }
  return existsSync(join(folder, "node_modules", name))
    ? { name, ...entry, from: inside.bundle, ...style(spec) }
    : undefined
}

/** Names, sizes and times of the module's own file; that of what it imports is not known before it is loaded. */
const editionOf = (path: string): string => {
  const facts = statSync(path, { throwIfNoEntry: false })
  return JSON.stringify([path, facts?.ino, facts?.size, facts?.mtimeMs, facts?.ctimeMs])
}

const findLocal = (driver: DriverContract, spec: SdkSpec, language: RunnerLanguage, here: Surroundings): Found => {
  const folder = dirname(driver.source.file)
  const module = localModule(folder, spec, language)
  if (module === undefined)
    return refuse(`\`${spec.package}\` is not in the driver's folder`, "put it beside the driver's manifest")
  const found = findInterpreter(language, [{ folder, inside: inside.bundle }], here)
  if (!found.ok) return refuse(found.reason, found.fix)
  const bundles = { [folder]: inside.bundle }
  const edition = editionOf(join(folder, spec.package, spec.entrypoint ?? ""))
  return { ok: true, found: { module, interpreter: found.interpreter, bundles, edition } }
}

const moduleOf = (spec: SdkSpec, layer: FrozenLayer): ModuleSpec => {
  const { package: name, entrypoint } = spec
  const path = layer.env["PYTHONPATH"]
  return {
    name,
    ...(entrypoint === undefined ? {} : { entry: entrypoint }),
    from: layer.inside,
    ...(path === undefined ? style(spec) : { paths: [path] }),
  }
}

const sameName = (a: string, b: string): boolean =>
  a.toLowerCase().replace(/[-_.]+/g, "-") === b.toLowerCase().replace(/[-_.]+/g, "-")

const findInstalled = async (
  driver: DriverContract,
  spec: SdkSpec,
  language: RunnerLanguage,
  here: Surroundings,
): Promise<Found> => {
  const wanted = packagesOf(driver, spec)
  const [request] = wanted
  if (request === undefined)
    return refuse(
      `this host installs packages by npm, pip and local, not by ${spec.packageManager}`,
      "use a driver whose package comes by npm or pip, or lies beside its manifest (`local`)",
    )
  const installed = await here.installs.find(request)
  if (!installed.ok) {
    if (installed.details["installed"] === false && here.mayInstall)
      return { ok: false, answer: { available: true, install: wanted } }
    const { code, message, hint = "run `caisson install DRIVER`" } = installed
    const fix = hint.replace("DRIVER", driver.id)
    return {
      ok: false,
      answer: { available: false, code: isReasonCode(code) ? code : "install_failed", reason: message, fix },
    }
  }
  const layer = installed.value
  const version = layer.packages.find(({ name }) => sameName(name, spec.package))?.version
  const range = rangeOf(driver, spec)
  if (range !== undefined && version !== undefined && !satisfies(version, range))
    return refuse(
      `version ${version} of ${spec.package} is installed, and the driver asks for ${range}`,
      `run \`caisson install ${driver.id}\``,
      "version_mismatch",
    )
  const found = findInterpreter(language, [], here)
  if (!found.ok) return refuse(found.reason, found.fix)
  return {
    ok: true,
    found: {
      module: moduleOf(spec, layer),
      interpreter: found.interpreter,
      bundles: layer.bundles,
      edition: layer.digest,
      ...(version === undefined ? {} : { version }),
    },
  }
}

export const findModule = async (driver: DriverContract, spec: SdkSpec, here: Surroundings): Promise<Found> => {
  const language = STYLES[spec.importStyle]
  if (language === undefined)
    return refuse(
      `this host runs modules of Node and Python, not a ${spec.importStyle}`,
      "use a driver of another language",
    )
  return spec.packageManager === "local"
    ? findLocal(driver, spec, language, here)
    : findInstalled(driver, spec, language, here)
}
