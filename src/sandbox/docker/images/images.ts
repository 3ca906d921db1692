/**
 * Images by content: what goes in decides the name, so an image is built once and found ever after.
 *
 * Guarantees: the runner image is named by the digest of its Dockerfile, base, Node and runner texts; a driver layer by its
 * parent and packages; a view by its parent and the programs it shows. A build that fails is a failure with the
 * builder's words. No build sees a secret or a workspace; only a driver layer has a network, and only the one given.
 */
import { createHash } from "node:crypto"
import { createReadStream, existsSync, readFileSync, statSync } from "node:fs"
import { Readable } from "node:stream"
import { pipeline } from "node:stream/promises"
import { fileURLToPath } from "node:url"
import { pack } from "tar-stream"
import type { UserBlock } from "../../identities.ts"
import type { Engine, Outcome, Progress } from "../engine/engine.ts"
import { portablePerl, startsPortable } from "./runner-code.ts"

const PUBLIC_BASE = "debian:bookworm-slim"
/** What `scripts/docker-base.mjs` loads. */
const LOCAL_BASES = ["caisson/base:trixie", "caisson/base:bookworm"]

const fileOf = (names: readonly string[]): string => {
  const found = names.map((name) => fileURLToPath(new URL(name, import.meta.url))).find((path) => existsSync(path))
  if (found === undefined) throw new Error(`${names[0]} is not in this installation`)
  return found
}
const dockerfile = (): string => fileOf(["../../../../Dockerfile.runner"])
export const runnerText = (name: string): string =>
  fileOf([`../../../runner/${name}`, `../../../../src/runner/${name}`])

/** What of `src/runner` the image carries. */
const RUNNER_TEXTS = ["bridge.pl", "prune.pl", "run-node.mjs", "run-python.py"]

const digest = (parts: readonly (string | Buffer)[]): string => {
  const hash = createHash("sha256")
  for (const part of parts) hash.update(`${Buffer.byteLength(part)}:`).update(part)
  return hash.digest("hex").slice(0, 24)
}
const digestFile = async (path: string): Promise<string> => {
  const hash = createHash("sha256")
  await pipeline(createReadStream(path), hash)
  return hash.digest("hex")
}

interface ContextFile {
  readonly name: string
  readonly mode: number
  readonly text?: string
  readonly file?: string
}
/** A build context as a stream: large files are not held in memory. */
const contextOf = (files: readonly ContextFile[]): Readable => {
  const archive = pack()
  const write = async (): Promise<void> => {
    for (const { name, mode, text, file } of files) {
      const common = { name, mode, mtime: new Date(0), uid: 0, gid: 0 }
      if (file === undefined) archive.entry(common, text ?? "")
      else await pipeline(createReadStream(file), archive.entry({ ...common, size: statSync(file).size }))
    }
    archive.finalize()
  }
  write().catch((error: Error) => archive.destroy(error))
  return Readable.from(archive)
}

/** A build's network mode, or only a look whether the image is there. */
type BuildNetwork = "none" | "default" | `container:${string}` | "find-only"
interface Recipe {
  readonly name: string
  readonly files: readonly ContextFile[]
  readonly args?: Readonly<Record<string, string>>
  readonly network: BuildNetwork
}
const findOrBuild = async (engine: Engine, recipe: Recipe, progress: Progress): Promise<Outcome<string>> => {
  const found = await engine.findImage(recipe.name)
  if (!found.ok) return found
  if (found.value !== undefined) return { ok: true, value: found.value }
  if (recipe.network === "find-only")
    return { ok: false, failure: { kind: "not-found", message: `${recipe.name} is not built` } }
  progress(`building ${recipe.name}`)
  const built = await engine.build(
    contextOf(recipe.files),
    {
      t: recipe.name,
      networkmode: recipe.network,
      rm: true,
      forcerm: true,
      ...(recipe.args === undefined ? {} : { buildargs: { ...recipe.args } }),
    },
    progress,
  )
  if (!built.ok) return built
  const made = await engine.findImage(recipe.name)
  if (!made.ok) return made
  return made.value === undefined
    ? { ok: false, failure: { kind: "refused", message: `the engine built ${recipe.name} and does not have it` } }
    : { ok: true, value: made.value }
}

interface RunnerOptions {
  readonly engine: Engine
  /** an image to build on; absent: one made by `scripts/docker-base.mjs`, else the public one */
  readonly base?: string
  readonly node?: string
  readonly progress?: Progress
}

const chooseBase = async (
  engine: Engine,
  wanted: string | undefined,
): Promise<Outcome<{ name: string; id: string }>> => {
  for (const name of wanted === undefined ? [...LOCAL_BASES, PUBLIC_BASE] : [wanted]) {
    const found = await engine.findImage(name)
    if (!found.ok) return found
    if (found.value !== undefined) return { ok: true, value: { name, id: found.value } }
  }
  const name = wanted ?? PUBLIC_BASE
  return { ok: true, value: { name, id: name } }
}

/** The runner image's id. Its build uses the network only where the base has to be fetched or lacks Python. */
export const ensureRunner = async ({
  engine,
  base,
  node = process.execPath,
  progress = () => {},
}: RunnerOptions): Promise<Outcome<string>> => {
  const chosen = await chooseBase(engine, base)
  if (!chosen.ok) return chosen
  const recipe = readFileSync(dockerfile(), "utf8")
  const texts = RUNNER_TEXTS.map((each) => ({ each, text: readFileSync(runnerText(each), "utf8") }))
  const parts = [recipe, ...texts.map(({ text }) => text), chosen.value.id, await digestFile(node)]
  const name = `caisson/runner:${digest(parts)}`
  return findOrBuild(
    engine,
    {
      name,
      files: [
        { name: "Dockerfile", mode: 0o644, text: recipe },
        ...texts.map(({ each, text }) => ({ name: `src/runner/${each}`, mode: 0o644, text })),
        { name: "node", mode: 0o755, file: node },
      ],
      args: { BASE: chosen.value.name },
      network: chosen.value.name.startsWith("caisson/") ? "none" : "default",
    },
    progress,
  )
}

interface PinnedOptions {
  readonly engine: Engine
  readonly image: string
  /** its programs are its own: the host's Node is not laid over them */
  readonly own: boolean
  /** where the host's Perl is put for the next step */
  readonly inside: string
  readonly node?: string
  readonly progress?: Progress
}

/**
 * The id of an image with the files of the one that is named, and nothing else of it. Steps run by the host's Perl, as the
 * loader would be told by an image's `ld.so.preload` to load what the image brings.
 */
export const ensurePinned = async ({
  engine,
  image,
  own,
  inside,
  node = process.execPath,
  progress = () => {},
}: PinnedOptions): Promise<Outcome<string>> => {
  const found = await engine.findImage(image)
  if (!found.ok) return found
  if (found.value === undefined)
    return {
      ok: false,
      failure: {
        kind: "image",
        message: `the engine does not have the image ${image}, and nothing is fetched for a call`,
      },
    }
  const perl = portablePerl()
  const link = "unlink '/usr/bin/node'; symlink '../local/bin/node', '/usr/bin/node' or die"
  const text = [
    "FROM scratch",
    `COPY --from=${found.value} / /`,
    "COPY nothing /etc/ld.so.preload",
    `COPY caisson/ ${inside}/`,
    ...(own ? [] : ["COPY node /usr/local/bin/node", `RUN ${JSON.stringify([...startsPortable(inside), "-e", link])}`]),
    "LABEL dev.caisson.image=pinned",
    "",
  ].join("\n")
  const prune = readFileSync(runnerText("prune.pl"), "utf8")
  const brought = [...Object.values(perl), ...(own ? [] : [node])]
  const digests = await Promise.all(brought.map(digestFile))
  return findOrBuild(
    engine,
    {
      name: `caisson/pinned:${digest([text, prune, ...digests])}`,
      files: [
        { name: "Dockerfile", mode: 0o644, text },
        { name: "nothing", mode: 0o644, text: "" },
        { name: "caisson/prune.pl", mode: 0o644, text: prune },
        ...Object.entries(perl).map(([name, file]) => ({ name: `caisson/${name}`, mode: 0o755, file })),
        ...(own ? [] : [{ name: "node", mode: 0o755, file: node }]),
      ],
      network: "none",
    },
    progress,
  )
}

/** Where the host's proxy listens inside a build's network. */
export const BUILD_PROXY_PORT = 3128

export interface DriverLayer {
  /** packages of the base's distribution, e.g. `jq` or `jq=1.6-2.1` */
  readonly packages: readonly string[]
  /** further lines for apt's source list, before the base's own */
  readonly sources?: readonly string[]
}
const PACKAGE = /^[a-z0-9][a-z0-9+.-]+(:[a-z0-9]+)?(=[A-Za-z0-9.+:~-]+)?$/
const SOURCE = /^deb (\[[a-z0-9=, -]+\] )?https?:\/\/[A-Za-z0-9.:/_~-]+( [A-Za-z0-9./_-]+)+$/

/** `network`: what the build's steps are connected to, such as the namespace of a container with a registry channel. */
export const ensureLayer = async (
  engine: Engine,
  parent: string,
  layer: DriverLayer,
  network: BuildNetwork,
  progress: Progress = () => {},
): Promise<Outcome<string>> => {
  const bad = [
    ...layer.packages.filter((name) => !PACKAGE.test(name)),
    ...(layer.sources ?? []).filter((line) => !SOURCE.test(line)),
  ]
  if (bad[0] !== undefined || layer.packages.length === 0)
    return { ok: false, failure: { kind: "refused", message: `not a package or source: ${bad[0] ?? "(none)"}` } }
  const packages = [...new Set(layer.packages)].sort()
  const sources = (layer.sources ?? []).map((line) => `${line}\n`).join("")
  const text = [
    `FROM ${parent}`,
    ...(sources === "" ? [] : ["COPY caisson.list /etc/apt/sources.list.d/caisson.list"]),
    `RUN apt-get update && apt-get install -y --no-install-recommends ${packages.join(" ")} && rm -rf /var/lib/apt/lists/* /var/cache/apt/*`,
    "LABEL dev.caisson.image=driver",
    "",
  ].join("\n")
  const files = [
    { name: "Dockerfile", mode: 0o644, text },
    ...(sources === "" ? [] : [{ name: "caisson.list", mode: 0o644, text: sources }]),
  ]
  const proxy = `http://127.0.0.1:${BUILD_PROXY_PORT}`
  // Both builders know these without a declaration and keep them out of the image.
  const args = { http_proxy: proxy, https_proxy: proxy, HTTP_PROXY: proxy, HTTPS_PROXY: proxy }
  return findOrBuild(
    engine,
    { name: `caisson/driver:${digest([parent, text, sources])}`, files, network, args },
    progress,
  )
}

const PROGRAM = /^([A-Za-z0-9@._+-]+=)?\/[A-Za-z0-9@._+/-]+$/
interface ViewOptions {
  readonly progress?: Progress
  /** what starts Perl in the parent */
  readonly perl?: readonly string[]
  /** the program is the image's own, with folders beside those of programs */
  readonly own?: boolean
}

/** The image in which only these programs are to be seen, each `path` or `name=path`. Built without any network. */
export const ensureView = async (
  engine: Engine,
  parent: string,
  programs: readonly string[],
  users: UserBlock,
  { progress = () => {}, perl = ["/usr/bin/perl"], own = false }: ViewOptions = {},
): Promise<Outcome<string>> => {
  const bad = programs.find((program) => !PROGRAM.test(program) || program.includes("/../"))
  if (bad !== undefined)
    return { ok: false, failure: { kind: "refused", message: `not the path of a program: ${bad}` } }
  const prune = readFileSync(runnerText("prune.pl"), "utf8")
  const command = [
    ...perl,
    "/usr/lib/caisson/prune.pl",
    `${users.first}-${users.first + users.count - 1}${own ? ",own" : ""}`,
    ...[...new Set(programs)].sort(),
  ]
  const text = [`FROM ${parent}`, `RUN ${JSON.stringify(command)}`, "LABEL dev.caisson.image=view", ""].join("\n")
  return findOrBuild(
    engine,
    {
      name: `caisson/view:${digest([parent, text, prune])}`,
      files: [{ name: "Dockerfile", mode: 0o644, text }],
      network: "none",
    },
    progress,
  )
}
