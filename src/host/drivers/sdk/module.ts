/**
 * Where an sdk driver's module is, on this machine and inside, and what runs it.
 *
 * Guarantees: it lies in the driver's own folder, or in a frozen layer of the packages that the driver names, in a version
 * that it takes; what no manager of this host brings is refused by name. Does not: load or install anything.
 */
import { existsSync, statSync } from "node:fs"
import { dirname, join } from "node:path"
import validRange from "semver/ranges/valid.js"
import { isPinned } from "../../../manifest/kinds/runner.ts"
import { satisfies } from "../../../manifest/schema/version.ts"
import type { DriverContract, RunnerNeeds, SdkSpec } from "../../../manifest/types.ts"
import { isReasonCode } from "../../failure.ts"
import type { FrozenLayer, InstallSpec, PackageRequest } from "../../install/types.ts"
import type { DriverAvailability, Surroundings } from "../kind.ts"
import { locateSystemProgram } from "../program/program.ts"
import { interpretersOf } from "../program/programs.ts"
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
): Extract<Found, { ok: false }> => ({
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

const needsOf = ({ runner }: DriverContract): RunnerNeeds | undefined =>
  runner?.form === "inline" ? runner.needs : undefined

/** `name@range` of npm, `name>=1` of pip. */
const neededPackage = (source: "npm" | "pip", text: string): PackageRequest => {
  const [, name = text, version] = (source === "npm" ? /^(@?[^@]+)(?:@(.+))?$/ : /^([\w.-]+)\s*(.+)?$/).exec(text) ?? []
  return { name, ...(version === undefined ? {} : { version }) }
}

/** What has to be installed for it: nothing where it comes along and needs nothing else. */
export const packagesOf = (driver: DriverContract, spec: SdkSpec): readonly InstallSpec[] => [
  ...registryPackages(driver, spec),
  ...(driver.bundle === undefined ? [] : [{ source: "code" as const, sources: driver.bundle.sources }]),
]

const registryPackages = (driver: DriverContract, spec: SdkSpec): readonly InstallSpec[] => {
  const { packageManager: manager } = spec
  const source = manager === "local" ? (spec.importStyle === "python" ? "pip" : "npm") : manager
  if (source !== "npm" && source !== "pip") return []
  const own = manager === "local" ? [] : [requestFor(spec, source, rangeOf(driver, spec))]
  const packages = [...own, ...(needsOf(driver)?.[source] ?? []).map((text) => neededPackage(source, text))]
  return packages.length === 0 ? [] : [{ source, packages }]
}

/** What its runner needs and this machine does not have, or what it may start of it. */
const nativesOf = (
  driver: DriverContract,
  language: RunnerLanguage,
  folders: readonly string[],
): { readonly ok: true; readonly programs: Readonly<Record<string, string>> } | Extract<Found, { ok: false }> => {
  const needs = needsOf(driver)
  const other = language === "node" ? needs?.pip : needs?.npm
  if (needs?.language !== undefined && needs.language !== "multi" && needs.language !== language)
    return refuse(
      `its runner is for ${needs.language}, and its module is one of ${language}`,
      "correct `needs.language`",
    )
  if (other !== undefined && other.length > 0)
    return refuse(`its runner needs ${other.join(", ")}, which no module of ${language} can use`, "correct `needs`")
  const programs: Record<string, string> = {}
  for (const name of needs?.native ?? []) {
    const located = locateSystemProgram(name, folders)
    if (!located.ok) return refuse(`its runner needs a program: ${located.reason}`, `install ${name}`)
    Object.assign(programs, interpretersOf(located.program), { [name]: located.program.found })
  }
  return { ok: true, programs }
}

/** Where modules beside the packages of a layer find those. */
const envOf = (layer: FrozenLayer | undefined): Readonly<Record<string, string>> =>
  layer?.source === "npm" ? { NODE_PATH: join(layer.inside, "node_modules") } : {}

type Layered = { readonly ok: true; readonly layer?: FrozenLayer } | Extract<Found, { ok: false }>

/** The packages that it is made of, or needs, as they are installed. */
const layerFor = async (driver: DriverContract, spec: SdkSpec, here: Surroundings): Promise<Layered> => {
  const wanted = registryPackages(driver, spec)
  const [request] = wanted
  if (request === undefined) return { ok: true }
  const installed = await here.installs.find(request)
  if (installed.ok) return { ok: true, layer: installed.value }
  if (installed.details["installed"] === false && here.mayInstall)
    return { ok: false, answer: { available: true, install: wanted } }
  const { code, message, hint = "run `caisson install DRIVER`" } = installed
  const fix = hint.replace("DRIVER", driver.id)
  return {
    ok: false,
    answer: { available: false, code: isReasonCode(code) ? code : "install_failed", reason: message, fix },
  }
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

/** Its folder, with the packages that its runner needs beside it. */
const findLocal = (
  driver: DriverContract,
  spec: SdkSpec,
  { language, here, layer, programs }: Parts,
  composed?: FrozenLayer,
): Found => {
  const folder = composed?.folder ?? dirname(driver.source.file)
  const local = localModule(folder, spec, language)
  if (local === undefined)
    return composed === undefined
      ? refuse(`\`${spec.package}\` is not in the driver's folder`, "put it beside the driver's manifest")
      : refuse(`\`run: ${spec.package}\` is none of the files that it is composed of`, "correct `run` or `code`")
  const found = findInterpreter(language, [{ folder, inside: inside.bundle }], here)
  if (!found.ok) return refuse(found.reason, found.fix)
  const path = layer?.env["PYTHONPATH"]
  const module: ModuleSpec = {
    ...local,
    ...(path === undefined ? {} : { paths: [...(local.paths ?? []), path] }),
    ...(layer?.source === "npm" ? { also: layer.inside } : {}),
  }
  const bundles = { [folder]: inside.bundle, ...layer?.bundles }
  const own = composed?.digest ?? editionOf(join(folder, spec.package, spec.entrypoint ?? ""))
  const edition = `${own} ${layer?.digest ?? ""}`
  return {
    ok: true,
    found: {
      module,
      interpreter: found.interpreter,
      bundles,
      programs,
      env: envOf(layer),
      edition,
      ...(composed === undefined ? {} : { composed: composed.digest }),
    },
  }
}

/** From its bundle, put together anew where one of its files is another one by now. */
const findComposed = async (driver: DriverContract, spec: SdkSpec, parts: Parts): Promise<Found> => {
  const { bundle } = driver
  if (bundle === undefined) return findLocal(driver, spec, parts)
  const made = await parts.here.installs.ensure({ source: "code", sources: bundle.sources }, { repair: true })
  if (made.ok) return findLocal(driver, spec, parts, made.value)
  const { code, message, hint = "correct `code`" } = made
  return {
    ok: false,
    answer: { available: false, code: isReasonCode(code) ? code : "install_failed", reason: message, fix: hint },
  }
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

const findInstalled = (driver: DriverContract, spec: SdkSpec, { language, here, layer, programs }: Parts): Found => {
  if (layer === undefined)
    return refuse(
      `this host installs packages by npm, pip and local, not by ${spec.packageManager}`,
      "use a driver whose package comes by npm or pip, or lies beside its manifest (`local`)",
    )
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
      programs,
      env: {},
      edition: layer.digest,
      ...(version === undefined ? {} : { version }),
    },
  }
}

interface Parts {
  readonly language: RunnerLanguage
  readonly here: Surroundings
  readonly layer?: FrozenLayer
  readonly programs: Readonly<Record<string, string>>
}

/** With the image that its runner names, which `enforceable.ts` and the backend let through or refuse. */
export const findModule = async (driver: DriverContract, spec: SdkSpec, here: Surroundings): Promise<Found> => {
  const image = driver.runner?.form === "inline" ? driver.runner.image : undefined
  if (image !== undefined && !isPinned(image))
    return refuse("its runner names an image that is not named by its digest", "write `image: NAME@sha256:…`")
  const located = await locate(driver, spec, here)
  return located.ok && image !== undefined ? { ok: true, found: { ...located.found, image } } : located
}

const locate = async (driver: DriverContract, spec: SdkSpec, here: Surroundings): Promise<Found> => {
  const language = STYLES[spec.importStyle]
  if (language === undefined)
    return refuse(
      `this host runs modules of Node and Python, not a ${spec.importStyle}`,
      "use a driver of another language",
    )
  const natives = nativesOf(driver, language, here.folders)
  if (!natives.ok) return natives
  const layered = await layerFor(driver, spec, here)
  if (!layered.ok) return layered
  const { programs } = natives
  const parts: Parts = { language, here, programs, ...(layered.layer === undefined ? {} : { layer: layered.layer }) }
  return spec.packageManager === "local" ? findComposed(driver, spec, parts) : findInstalled(driver, spec, parts)
}
