/**
 * What an image starts: its own program by its path in the image, with what that program's first line starts.
 *
 * Guarantees: nothing of the image is run. What is read of it is bounded: its words, its variables, the beginnings of the
 * files that a start goes through. The image is one that the engine has, by its digest; nothing is fetched.
 */
import { posix } from "node:path"
import type { ImageProgram, ImageQuestion } from "../../terms.ts"
import { LABEL } from "../container/container-spec.ts"
import type { ContainerId, Engine, ImageFacts, Outcome } from "../engine/engine.ts"
import { firstEntry } from "../engine/first-entry.ts"
import type { Removals } from "../engine/removals.ts"

const MOST = { words: 256, variables: 256, text: 32_768, hops: 16, interpreters: 4, firstLine: 256 } as const
const PATHS = ["/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"]

const refused = (message: string): Outcome<never> => ({ ok: false, failure: { kind: "image", message } })

interface Looking {
  readonly engine: Engine
  readonly container: ContainerId
  readonly facts: ImageFacts
}

/** How the file at a path begins, through links; undefined where there is none. */
const startOf = async ({ engine, container }: Looking, path: string): Promise<Buffer | undefined> => {
  let at = path
  for (let hop = 0; hop < MOST.hops; hop += 1) {
    const read = await engine.read(container, at)
    if (!read.ok) return undefined
    const entry = await firstEntry(read.value, MOST.firstLine)
    if (entry?.type === "file") return entry.start
    if (entry?.type !== "symlink" || entry.target === undefined) return undefined
    at = posix.resolve(posix.dirname(at), entry.target)
  }
  return undefined
}

interface Found {
  readonly path: string
  readonly start: Buffer
}

const searchPath = ({ env }: ImageFacts): readonly string[] => {
  const own = env.find(([name]) => name === "PATH")?.[1]
  return own === undefined ? PATHS : own.split(":").filter((each) => each.startsWith("/"))
}

const find = async (looking: Looking, name: string): Promise<Found | undefined> => {
  const places = name.includes("/")
    ? [posix.resolve(looking.facts.folder, name)]
    : searchPath(looking.facts).map((folder) => posix.join(folder, name))
  for (const path of places) {
    const start = await startOf(looking, path)
    if (start !== undefined) return { path, start }
  }
  return undefined
}

/** What its first line starts, and what that starts. */
const interpretersOf = async (looking: Looking, program: Found): Promise<readonly string[]> => {
  const paths: string[] = []
  let at: Found | undefined = program
  for (let depth = 0; at !== undefined && depth < MOST.interpreters; depth += 1) {
    const line = /^#!\s*(\S+)(?:[ \t]+(?:-S[ \t]+)?(\S+))?/.exec(at.start.toString("latin1"))
    if (line === null) break
    const [, path = "", word] = line
    paths.push(path)
    const isEnv = posix.basename(path) === "env" && word !== undefined
    at = await find(looking, isEnv ? word : path)
    if (isEnv && at !== undefined) paths.push(at.path)
  }
  return paths
}

const describe = async (looking: Looking, { args, spawn }: ImageQuestion): Promise<Outcome<ImageProgram>> => {
  const { id, entrypoint, cmd, env, folder } = looking.facts
  const words = [...entrypoint, ...(args.length > 0 ? args : cmd)]
  const size = [...words, ...env.flat()].reduce((sum, text) => sum + text.length, 0)
  if (words.length > MOST.words || env.length > MOST.variables || size > MOST.text)
    return refused(`the image ${id} says more of itself than this host takes`)
  const [first] = words
  if (first === undefined) return refused(`the image ${id} names no program, and neither does the driver`)
  const program = await find(looking, first)
  if (program === undefined) return refused(`the image ${id} has no program ${first.slice(0, 200)}`)
  const starts: Record<string, string> = {}
  for (const path of await interpretersOf(looking, program)) starts[path] = path
  const absent: string[] = []
  for (const name of spawn) {
    const other = await find(looking, name)
    if (other === undefined) absent.push(name)
    else for (const path of [other.path, ...(await interpretersOf(looking, other))]) starts[path] = path
  }
  const argv = [program.path, ...words.slice(1)]
  return { ok: true, value: { image: id, argv, starts, absent, env: Object.fromEntries(env), folder } }
}

export const findImageProgram = async (
  { engine, removals, labels }: { engine: Engine; removals: Removals; labels: { host: string; data: string } },
  question: ImageQuestion,
): Promise<Outcome<ImageProgram>> => {
  const found = await engine.imageFacts(question.image)
  if (!found.ok) return found
  if (found.value === undefined)
    return refused(`the engine does not have the image ${question.image}, and nothing is fetched for a call`)
  const facts = found.value
  const created = await engine.create({
    Image: facts.id,
    Entrypoint: ["/"],
    Labels: { [LABEL.host]: labels.host, [LABEL.slot]: "reader", [LABEL.data]: labels.data },
    HostConfig: { NetworkMode: "none" },
  })
  if (!created.ok) return created
  try {
    return await describe({ engine, container: created.value, facts }, question)
  } finally {
    await removals.remove(created.value)
  }
}
