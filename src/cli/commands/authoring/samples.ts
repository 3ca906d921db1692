/**
 * Files of the workspace that a command's own words name: what its examples are run on.
 *
 * Guarantees: each is opened once, below the workspace's descriptor and through no link; what is no plain file, or too large, is
 * left out, and nothing is waited for.
 */
import { isUtf8 } from "node:buffer"
import { closeSync, readSync } from "node:fs"
import { join } from "node:path"
import type { ScaffoldFile } from "../../../authoring/scaffold/scaffold.ts"
import { openFile } from "../../../sandbox/effects/beneath.ts"
import { fromBuffer } from "../../../sandbox/effects/names.ts"
import { openFolder } from "../../../sandbox/folder.ts"

const SAMPLES = 20
const SAMPLE_BYTES = 65_536

/** Its bytes; undefined where it is no plain file of at most so many. */
const bytesOf = (root: number, name: string): Buffer | undefined => {
  let fd: number
  try {
    fd = openFile(root, fromBuffer(Buffer.from(name)))
  } catch {
    return undefined
  }
  try {
    const buffer = Buffer.alloc(SAMPLE_BYTES + 1)
    let filled = 0
    for (let got = -1; got !== 0 && filled < buffer.length; filled += got)
      got = readSync(fd, buffer, filled, buffer.length - filled, filled)
    return filled > SAMPLE_BYTES ? undefined : buffer.subarray(0, filled)
  } finally {
    closeSync(fd)
  }
}

export const samplesOf = (workspace: string, words: readonly string[]): readonly ScaffoldFile[] => {
  const names = [...new Set(words)].filter((word) => /^[\w][\w./-]*$/.test(word) && !word.split("/").includes(".."))
  using folder = openFolder(workspace)
  return names.slice(0, SAMPLES).flatMap((name): readonly ScaffoldFile[] => {
    const bytes = bytesOf(folder.fd, name)
    if (bytes === undefined) return []
    const text = isUtf8(bytes) ? bytes.toString("utf8") : `(${bytes.length} bytes that are no text)`
    return [{ path: join("example", name), text, bytes }]
  })
}
