/**
 * What a driver's own module is: its bytes, and those of the files of its folder that it names.
 *
 * Guarantees: a module that names none of them has the digest of its bytes; else one digest is over the sorted list of all of
 * them. A file is named by a text that begins with `./` or `../`, whatever that is for: an import, a require, a path that is
 * read; so are those that it names itself. Bounded, and only what lies below the module's folder is looked at.
 * Does not: cover packages of `node_modules`, nor names that are put together when it runs; what a call ran of its folder is
 * in its receipt.
 */
import { realpathSync } from "node:fs"
import { basename, dirname, extname, join, relative, sep } from "node:path"
import { limits } from "../limits.ts"
import { jcs, sha256 } from "../values/digest.ts"
import { readBounded } from "./bounded.ts"

type Answer = { readonly ok: true; readonly digest: string } | { readonly ok: false; readonly why: string }

const CODE = new Set([".ts", ".mts", ".cts", ".js", ".mjs", ".cjs"])
/** Also of a name without its ending, which a require may have. */
const ENDINGS = ["", ".js", ".cjs", ".json", "/index.js", "/index.cjs"]
const NAMED = /["'`](\.{1,2}\/[^"'`\\\n$]{1,300})["'`]/g

const namedIn = (bytes: Uint8Array): readonly string[] =>
  [...Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString("utf8").matchAll(NAMED)].map(
    ([, name = ""]) => name,
  )

/** The file that a name leads to, where that lies below the folder. */
const fileAt = (path: string, folder: string): string | undefined => {
  for (const ending of ENDINGS) {
    try {
      const real = realpathSync(`${path}${ending}`)
      if (real.startsWith(`${folder}${sep}`) && typeof readBounded(real, 0) !== "string") return real
    } catch {
      // There is none of that name.
    }
  }
  return undefined
}

export const moduleDigest = (file: string): Answer => {
  const own = readBounded(file)
  if (typeof own === "string") return { ok: false, why: own }
  if (own.length > limits.fileBytes) return { ok: false, why: `is larger than ${limits.fileBytes} bytes` }
  const folder = realpathSync(dirname(file))
  const found = new Map<string, string>()
  const open: { readonly at: string; readonly bytes: Uint8Array }[] = [{ at: folder, bytes: own }]
  let left = limits.moduleBytes - own.length
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    for (const name of namedIn(next.bytes)) {
      const real = fileAt(join(next.at, name), folder)
      const path = real === undefined ? "" : relative(folder, real)
      if (real === undefined || found.has(path) || path === basename(file)) continue
      const bytes = readBounded(real, left)
      if (typeof bytes === "string") return { ok: false, why: `names ${path}, which ${bytes}` }
      left -= bytes.length
      if (left < 0 || found.size >= limits.moduleFiles)
        return {
          ok: false,
          why: `names more than ${limits.moduleFiles} files, or ${limits.moduleBytes} bytes in them`,
        }
      found.set(path, sha256(bytes))
      if (CODE.has(extname(path))) open.push({ at: dirname(real), bytes })
    }
  }
  if (found.size === 0) return { ok: true, digest: sha256(own) }
  const files = [...found].sort(([a], [b]) => (a < b ? -1 : 1))
  return { ok: true, digest: sha256(Buffer.from(jcs([sha256(own), files]))) }
}
