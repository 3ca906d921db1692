/**
 * What a call ran, by content: the program, the programs it may start, and the files its driver brings along.
 *
 * Guarantees: each is named with the SHA-256 of what lay there when the call was sealed; of a bundle, one digest over
 * the sorted list of its files (path, kind, whether it can be executed, digest or link target). A digest is remembered
 * for as long as device, inode, size, modification and change time stay, of large files across processes too. Takes turns
 * with other work, and neither fails a call nor holds it up for long: what cannot be read is recorded as unreadable, and
 * what is too much to read by its size.
 * Of a program of an image, the image's own digest says it all.
 * Does not: cover the libraries below /usr, which the system's own packages vouch for.
 */
import { createHash } from "node:crypto"
import { type BigIntStats, constants, statSync } from "node:fs"
import { open, readdir, readFile, readlink, rename, writeFile } from "node:fs/promises"
import { basename, dirname, join } from "node:path"
import { installedLayersFolder, programDigestsFile } from "../../data-folder/paths.ts"
import type { JsonObject } from "../../manifest/types.ts"
import type { Executables } from "../../sandbox/backend.ts"
import { hostLimits } from "../limits.ts"
import { cut } from "./bounded.ts"

/** Smaller files are read again as fast as they are looked up. */
const WORTH_KEEPING = 1 << 20
const KEPT = 256
const DIGEST = /^sha256:[0-9a-f]{64}$/

/** identity of a file's content → digest */
const known = new Map<string, string>()
const loaded = new Map<string, Promise<void>>()

const load = (data: string): Promise<void> => {
  let work = loaded.get(data)
  if (work === undefined) {
    work = readFile(programDigestsFile(data), "utf8")
      .then((text) => {
        for (const [key, digest] of Object.entries(JSON.parse(text) as Record<string, unknown>))
          if (typeof digest === "string" && DIGEST.test(digest)) known.set(key, digest)
      })
      .catch(() => undefined)
    loaded.set(data, work)
  }
  return work
}

const save = async (data: string, key: string, digest: string): Promise<void> => {
  const temporary = `${programDigestsFile(data)}.${process.pid}.new`
  try {
    const held = JSON.parse(await readFile(programDigestsFile(data), "utf8").catch(() => "{}")) as Record<
      string,
      unknown
    >
    const rows = [...Object.entries(held).filter(([other]) => other !== key), [key, digest]].slice(-KEPT)
    await writeFile(temporary, JSON.stringify(Object.fromEntries(rows)), { mode: 0o600 })
    await rename(temporary, programDigestsFile(data))
  } catch {
    // Not remembering a digest costs reading the file once more.
  }
}

/** What may still be read for one receipt. */
interface Budget {
  bytes: number
}

/** A file is the same content while all of these are. */
const keyOf = ({ dev, ino, size, mtimeNs, ctimeNs }: BigIntStats): string =>
  [dev, ino, size, mtimeNs, ctimeNs].join(":")

const fileDigest = async (data: string, path: string, budget: Budget): Promise<string> => {
  // What was read before is not even opened.
  const found = statSync(path, { bigint: true, throwIfNoEntry: false })
  const read = found === undefined ? undefined : known.get(keyOf(found))
  if (read !== undefined) return read
  // Never waits for the other end of a fifo.
  const file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK)
  try {
    const facts = await file.stat({ bigint: true })
    const { size, mode } = facts
    if ((Number(mode) & 0o170000) !== 0o100000) return "special"
    const key = keyOf(facts)
    const before = known.get(key)
    if (before !== undefined) return before
    const bytes = Number(size)
    if (bytes > budget.bytes) return `none: ${bytes} bytes`
    budget.bytes -= bytes
    const hash = createHash("sha256")
    // No further than it was long: it may be growing.
    if (bytes > 0)
      for await (const chunk of file.createReadStream({ autoClose: false, highWaterMark: 1 << 20, end: bytes - 1 }))
        hash.update(chunk as Buffer)
    const digest = `sha256:${hash.digest("hex")}`
    known.set(key, digest)
    if (size >= WORTH_KEEPING) await save(data, key, digest)
    return digest
  } finally {
    await file.close()
  }
}

const orUnreadable = (work: Promise<string>): Promise<string> =>
  work.catch((error: unknown) => `unreadable: ${(error as NodeJS.ErrnoException).code ?? "error"}`)

const bundleFacts = async (data: string, root: string, budget: Budget): Promise<JsonObject> => {
  const hash = createHash("sha256")
  const most = hostLimits.receiptBundleFiles.value
  let files = 0
  let unread = 0
  const visit = async (folder: string, name: string): Promise<boolean> => {
    const entries = await readdir(folder, { withFileTypes: true })
    for (const entry of entries.sort((a, b) => (a.name < b.name ? -1 : 1))) {
      const [path, shown] = [join(folder, entry.name), `${name}/${entry.name}`]
      files += 1
      if (files > most) return false
      if (entry.isDirectory()) {
        if (!(await visit(path, shown))) return false
        continue
      }
      const what = entry.isSymbolicLink()
        ? `link ${await orUnreadable(readlink(path))}`
        : `file ${await orUnreadable(fileDigest(data, path, budget))}`
      if (what.startsWith("file none")) unread += 1
      hash.update(`${JSON.stringify(shown)} ${what}\n`)
    }
    return true
  }
  try {
    const whole = await visit(root, "")
    if (!whole) return { digest: "none", more_than: most }
    return { digest: `sha256:${hash.digest("hex")}`, files, ...(unread === 0 ? {} : { unread }) }
  } catch (error) {
    return { digest: `unreadable: ${(error as NodeJS.ErrnoException).code ?? "error"}`, files }
  }
}

export const whatRan = async (data: string, executables: Executables): Promise<JsonObject> => {
  const { program, spawn, bundles, image, imagePrograms } = executables
  // Its digest is that of all that lies in it.
  if (imagePrograms === true && image !== undefined)
    return {
      image: cut(image, 256),
      program: cut(program, 1024),
      ...(Object.keys(spawn).length === 0
        ? {}
        : { may_start: Object.keys(spawn).slice(0, hostLimits.receiptPrograms.value) }),
    }
  await load(data)
  const budget: Budget = { bytes: hostLimits.receiptDigestBytes.value }
  // The program itself comes first, whatever else is too much.
  const digest = await orUnreadable(fileDigest(data, program, budget))
  const others: JsonObject[] = []
  for (const [name, path] of Object.entries(spawn).slice(0, hostLimits.receiptPrograms.value))
    others.push({
      name: cut(name, 128),
      path: cut(path, 1024),
      digest: await orUnreadable(fileDigest(data, path, budget)),
    })
  const brought: JsonObject[] = []
  for (const [path, inside] of Object.entries(bundles)) {
    const where = { path: cut(path, 1024), inside: cut(inside, 1024) }
    // A frozen layer was compared with its digest when it was handed out for this call.
    const layer = dirname(path) === installedLayersFolder(data) ? { layer: `sha256:${basename(path)}` } : undefined
    brought.push({ ...where, ...(layer ?? (await bundleFacts(data, path, budget))) })
  }
  return {
    digest,
    ...(others.length === 0 ? {} : { may_start: others }),
    ...(Object.keys(spawn).length > others.length ? { may_start_total: Object.keys(spawn).length } : {}),
    ...(brought.length === 0 ? {} : { bundles: brought }),
  }
}
