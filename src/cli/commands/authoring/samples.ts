/**
 * Files of the workspace that a command's own words name, and that it was seen to open: what its examples are run on.
 *
 * Guarantees: each is opened once, below the workspace's descriptor and through no link; what is no plain file, or too large, is
 * left out, and nothing is waited for. What only the program chose to open is left out where it looks like a key or a password:
 * examples are handed on with their contract.
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

const PRIVATE_NAME =
  /(?:^|\/)\.|(?:^|[/._-])(?:id_(?:rsa|dsa|ecdsa|ed25519)|secrets?|passwords?|passwd|credentials?|tokens?|keys?|private)(?:[/._-]|$)|\.(?:pem|key|p12|pfx|jks|kdbx?|gpg|asc|ovpn)$/i
const PRIVATE_TEXT =
  /-----BEGIN [A-Z ]*PRIVATE KEY|(?:^|[^A-Za-z])(?:ghp_|gho_|github_pat_|xox[abp]-|AKIA|sk-|glpat-)[A-Za-z0-9_-]{12}/

/** Whether what lies there may be somebody's to keep. */
const isPrivate = (name: string, bytes: Buffer): boolean =>
  PRIVATE_NAME.test(name) || PRIVATE_TEXT.test(bytes.toString("latin1"))

const isPlain = (name: string): boolean => /^[\w][\w./-]*$/.test(name) && !name.split("/").includes("..")

/** `words`: of whoever runs the command; `opened`: what the program read as well. */
export const samplesOf = (
  workspace: string,
  words: readonly string[],
  opened: readonly string[] = [],
): readonly ScaffoldFile[] => {
  const named = new Set(words)
  const names = [...new Set([...words, ...opened])].filter(isPlain)
  using folder = openFolder(workspace)
  return names.slice(0, SAMPLES).flatMap((name): readonly ScaffoldFile[] => {
    const bytes = bytesOf(folder.fd, name)
    if (bytes === undefined || (!named.has(name) && isPrivate(name, bytes))) return []
    const text = isUtf8(bytes) ? bytes.toString("utf8") : `(${bytes.length} bytes that are no text)`
    return [{ path: join("example", name), text, bytes }]
  })
}
