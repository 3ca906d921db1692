/**
 * Reads a zip archive, by its directory, into a tree. Has no dependencies.
 *
 * Guarantees: members lie apart, in the order of nothing but their own headers, which must say the same as the directory;
 * their sizes are counted before any is unpacked, and none grows beyond its own. Encrypted and foreign members are refused.
 */
import { readSync } from "node:fs"
import { Readable } from "node:stream"
import { crc32, createInflateRaw, inflateRawSync } from "node:zlib"
import { nameOf, Refused } from "./unpack-to.mjs"

const END = 0x06054b50
const END_64 = 0x06064b50
const LOCATOR_64 = 0x07064b50
const ENTRY = 0x02014b50
const LOCAL = 0x04034b50
const MOST_DIRECTORY = 64 * 1024 * 1024
const LONGEST_LINK = 4096
const PIECE = 64 * 1024
const [FILE, FOLDER, LINK] = [0o100000, 0o040000, 0o120000]

const damaged = () => new Refused("its directory is damaged")

const bytesAt = (fd, at, length) => {
  const bytes = Buffer.alloc(length)
  let done = 0
  while (done < length) {
    const read = readSync(fd, bytes, done, length - done, at + done)
    if (read === 0) throw new Refused("it ends in the middle")
    done += read
  }
  return bytes
}
function* piecesOf(fd, from, length) {
  for (let at = 0; at < length; at += PIECE) yield bytesAt(fd, from + at, Math.min(PIECE, length - at))
}
const large = (bytes, at) => {
  const value = bytes.readBigUInt64LE(at)
  if (value > BigInt(Number.MAX_SAFE_INTEGER)) throw damaged()
  return Number(value)
}

/** Where the directory is, and how much of it. */
const directoryOf = (fd, size) => {
  const from = Math.max(0, size - 65_557)
  const tail = bytesAt(fd, from, size - from)
  for (let at = tail.length - 22; at >= 0; at -= 1) {
    if (tail.readUInt32LE(at) !== END || at + 22 + tail.readUInt16LE(at + 20) !== tail.length) continue
    const found = {
      count: tail.readUInt16LE(at + 10),
      length: tail.readUInt32LE(at + 12),
      start: tail.readUInt32LE(at + 16),
    }
    const locator = at - 20
    if (locator < 0 || tail.readUInt32LE(locator) !== LOCATOR_64) return { ...found, end: from + at }
    const record = bytesAt(fd, large(tail, locator + 8), 56)
    if (record.readUInt32LE(0) !== END_64) throw damaged()
    return { count: large(record, 32), length: large(record, 40), start: large(record, 48), end: from + at }
  }
  throw new Refused("it ends before its end")
}

/** Sizes and places that do not fit into four bytes. */
const withLarge = (entry, extra) => {
  for (let at = 0; at + 4 <= extra.length; ) {
    const [id, length] = [extra.readUInt16LE(at), extra.readUInt16LE(at + 2)]
    if (id === 1) {
      let next = at + 4
      for (const name of ["size", "packed", "offset"])
        if (entry[name] === 0xffffffff) {
          if (next + 8 > at + 4 + length || next + 8 > extra.length) throw damaged()
          entry[name] = large(extra, next)
          next += 8
        }
    }
    at += 4 + length
  }
  return entry
}

const entriesOf = (fd, { count, length, start, end }, limits) => {
  if (count > limits.files) throw new Refused(`it holds more than ${limits.files} members`)
  if (length > MOST_DIRECTORY || start + length > end) throw damaged()
  const bytes = bytesAt(fd, start, length)
  const entries = []
  for (let at = 0; entries.length < count; ) {
    if (at + 46 > bytes.length || bytes.readUInt32LE(at) !== ENTRY) throw damaged()
    const [names, extras, notes] = [28, 30, 32].map((field) => bytes.readUInt16LE(at + field))
    const next = at + 46 + names + extras + notes
    if (next > bytes.length) throw damaged()
    const raw = bytes.subarray(at + 46, at + 46 + names)
    const isUnix = bytes[at + 5] === 3
    const entry = {
      raw,
      name: nameOf(raw),
      flags: bytes.readUInt16LE(at + 8),
      method: bytes.readUInt16LE(at + 10),
      crc: bytes.readUInt32LE(at + 16),
      packed: bytes.readUInt32LE(at + 20),
      size: bytes.readUInt32LE(at + 24),
      offset: bytes.readUInt32LE(at + 42),
      mode: isUnix ? bytes.readUInt32LE(at + 38) >>> 16 : 0,
    }
    entries.push(withLarge(entry, bytes.subarray(at + 46 + names, at + 46 + names + extras)))
    at = next
  }
  return entries
}

/** Where each one's bytes are; none may share any with another, nor with the directory. */
const placed = (fd, entries, directory) => {
  let free = 0
  return entries
    .toSorted((a, b) => a.offset - b.offset)
    .map((entry) => {
      if (entry.offset < free) throw new Refused(`the member ${JSON.stringify(entry.name)} overlaps another one`)
      const head = bytesAt(fd, entry.offset, 30)
      if (head.readUInt32LE(0) !== LOCAL) throw damaged()
      const length = head.readUInt16LE(26)
      const at = entry.offset + 30 + length + head.readUInt16LE(28)
      const differs = !bytesAt(fd, entry.offset + 30, length).equals(entry.raw) || head.readUInt16LE(8) !== entry.method
      if (differs) throw new Refused(`the member ${JSON.stringify(entry.name)} is not what the directory says`)
      free = at + entry.packed
      if (free > directory.start) throw new Refused(`the member ${JSON.stringify(entry.name)} overlaps the directory`)
      return { ...entry, at }
    })
}

const contentOf = async (fd, { at, packed, size, method, crc, name }, hear) => {
  const wrong = () => new Refused(`the member ${JSON.stringify(name)} is not what the directory says`)
  let [sum, count] = [0, 0]
  if (packed > 0) {
    const pieces = piecesOf(fd, at, packed)
    const stream = method === 8 ? Readable.from(pieces).pipe(createInflateRaw()) : pieces
    try {
      for await (const bytes of stream) {
        count += bytes.length
        if (count > size) throw wrong()
        sum = crc32(bytes, sum)
        hear(bytes)
      }
    } catch (error) {
      throw error instanceof Refused ? error : wrong()
    }
  }
  if (count !== size || sum !== crc) throw wrong()
}

const linkTarget = (fd, entry) => {
  const { at, packed, size, method } = entry
  if (size > LONGEST_LINK || packed > LONGEST_LINK)
    throw new Refused(`the link ${JSON.stringify(entry.name)} is too long`)
  const bytes = bytesAt(fd, at, packed)
  try {
    return nameOf(method === 8 ? inflateRawSync(bytes, { maxOutputLength: LONGEST_LINK }) : bytes)
  } catch {
    throw damaged()
  }
}

export const unpackZip = async (fd, size, tree, limits) => {
  const directory = directoryOf(fd, size)
  const entries = placed(fd, entriesOf(fd, directory, limits), directory)
  for (const { name, size: declared, flags, method } of entries) {
    if ((flags & 0x2041) !== 0) tree.refuse(name, "encrypted")
    if (method !== 0 && method !== 8) tree.refuse(name, "packed in a way that is not known")
    tree.count(declared)
  }
  for (const entry of entries) {
    const { name, mode } = entry
    const kind = mode & 0o170000
    if (kind === LINK) tree.link(name, linkTarget(fd, entry))
    else if (name.endsWith("/") || kind === FOLDER) tree.folder(name, mode)
    else if (kind === 0 || kind === FILE) {
      const file = tree.file(name, mode)
      await contentOf(fd, entry, (bytes) => file.write(bytes))
      file.end()
    } else tree.refuse(name, "a device or a pipe")
  }
}
