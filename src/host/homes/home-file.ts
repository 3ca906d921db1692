/**
 * The file of one kept home: what it holds, encrypted and authenticated as a whole (AES-256-GCM), under a key of its own
 * that is new with every writing and lies in the file wrapped under a key of the vault.
 *
 * Guarantees: nothing of names, contents or sizes of files can be read without that key; a file that was changed, cut,
 * or put in another owner's place is refused. In the clear are the formats, the names of the keys, and two random words:
 * `generation`, another one after each logout, and `version`, another one after each change.
 * A home that was wiped is a file too, with a generation and nothing else: what a call keeps that began before is told by it.
 * Pure. Does not: keep who can write the data folder from putting an older file back.
 */
import { createCipheriv, createDecipheriv, randomBytes } from "node:crypto"
import type { HomeContent } from "../../sandbox/backend.ts"
import { isWhole } from "../../sandbox/layers/home/content.ts"
import { decrypt, encrypt, isSealed, type Sealed } from "../secrets/sealed-file.ts"

export interface HomeKey {
  /** names it in the vault */
  readonly id: string
  readonly bytes: Uint8Array
}

interface Header {
  readonly format: "caisson-home/1"
  readonly generation: string
  readonly version: string
  /** absent: it was wiped */
  readonly sealed?: { readonly key: string; readonly dataKey: Sealed }
}

export interface HomeFile extends Header {
  /** the header as it was written, which the rest is bound to */
  readonly line: string
  readonly body: Buffer
}

const FORMAT = "caisson-home/1"
const ALGORITHM = "aes-256-gcm"
const NONCE = 12
const TAG = 16
const WORD = /^[0-9a-f]{32}$/

/** the generation of a home that was never wiped */
export const FIRST = "0".repeat(32)
export const newWord = (): string => randomBytes(16).toString("hex")

/** `owner`: the name of the home, so that one owner's file is of no use in another's place. */
const boundTo = (owner: string, key: string): string => `${FORMAT} data key of ${owner} ${key}`

const encode = (content: HomeContent): Buffer => {
  const files = content.flatMap((entry) => (entry.kind === "file" ? [entry.content] : []))
  const index = content.map((entry) => {
    if (entry.kind !== "file") return entry
    const { content: bytes, ...rest } = entry
    return { ...rest, size: bytes.length }
  })
  const head = Buffer.from(JSON.stringify(index))
  const length = Buffer.alloc(4)
  length.writeUInt32BE(head.length)
  return Buffer.concat([length, head, ...files])
}

type Row = Record<"path" | "kind" | "mode" | "mtimeMs" | "size" | "target", unknown>

const entryFrom = (row: Row, take: (size: number) => Uint8Array): HomeContent[number] | undefined => {
  const { path, kind, mode, mtimeMs, size, target } = row
  if (typeof path !== "string" || !Number.isInteger(mode)) return undefined
  const named = { path, mode: (mode as number) & 0o777 }
  if (kind === "folder") return { ...named, kind }
  if (kind === "link" && typeof target === "string") return { ...named, kind, target }
  if (kind !== "file" || typeof mtimeMs !== "number" || !Number.isInteger(size)) return undefined
  return { ...named, kind, mtimeMs, content: take(size as number) }
}

const decode = (plain: Buffer): HomeContent | undefined => {
  const length = plain.readUInt32BE(0)
  let at = 4 + length
  const rows = JSON.parse(plain.toString("utf8", 4, at)) as readonly Row[]
  const take = (size: number): Uint8Array => {
    const bytes = new Uint8Array(plain.subarray(at, at + size))
    at += size
    return bytes
  }
  const content = rows.map((row) => entryFrom(row, take))
  if (content.includes(undefined) || at !== plain.length || !isWhole(content as HomeContent)) return undefined
  return content as HomeContent
}

/** What was wiped. */
export const wipedFile = (): string =>
  `${JSON.stringify({ format: FORMAT, generation: newWord(), version: newWord() } satisfies Header)}\n`

export const sealHome = (
  owner: string,
  content: HomeContent,
  key: HomeKey,
  { generation, version }: Pick<Header, "generation" | "version">,
): Buffer => {
  const dataKey = randomBytes(32)
  const header: Header = {
    format: FORMAT,
    generation,
    version,
    sealed: { key: key.id, dataKey: encrypt(key.bytes, dataKey, boundTo(owner, key.id)) },
  }
  const line = `${JSON.stringify(header)}\n`
  const nonce = randomBytes(NONCE)
  const cipher = createCipheriv(ALGORITHM, dataKey, nonce)
  cipher.setAAD(Buffer.from(line))
  const plain = encode(content)
  const text = Buffer.concat([cipher.update(plain), cipher.final()])
  plain.fill(0)
  dataKey.fill(0)
  return Buffer.concat([Buffer.from(line), nonce, cipher.getAuthTag(), text])
}

/** Undefined where it is no home's file. */
export const readHomeFile = (bytes: Buffer): HomeFile | undefined => {
  const end = bytes.indexOf("\n") + 1
  if (end === 0) return undefined
  const line = bytes.toString("utf8", 0, end)
  try {
    const { format, generation, version, sealed } = JSON.parse(line) as Partial<Header>
    if (format !== FORMAT || !WORD.test(String(generation)) || !WORD.test(String(version))) return undefined
    const header = { format, generation: String(generation), version: String(version), line, body: bytes.subarray(end) }
    if (sealed === undefined) return header
    return WORD.test(sealed.key) && isSealed(sealed.dataKey) ? { ...header, sealed } : undefined
  } catch {
    return undefined
  }
}

/** Undefined where it was changed since it was written, or is another owner's. */
export const openHome = (owner: string, { sealed, line, body }: HomeFile, key: HomeKey): HomeContent | undefined => {
  if (sealed === undefined) return []
  try {
    const dataKey = decrypt(key.bytes, sealed.dataKey, boundTo(owner, key.id))
    const decipher = createDecipheriv(ALGORITHM, dataKey, body.subarray(0, NONCE), { authTagLength: TAG })
    decipher.setAAD(Buffer.from(line))
    decipher.setAuthTag(body.subarray(NONCE, NONCE + TAG))
    const plain = Buffer.concat([decipher.update(body.subarray(NONCE + TAG)), decipher.final()])
    dataKey.fill(0)
    const content = decode(plain)
    plain.fill(0)
    return content
  } catch {
    return undefined
  }
}
