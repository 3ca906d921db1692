/**
 * Reads a tar archive, as it comes, into a tree. Has no dependencies.
 *
 * Guarantees: headers must have their checksum; names of GNU and pax are bounded; what is no file, folder or link is
 * refused, and so is an archive that ends before its end.
 */
import { nameOf, Refused } from "./unpack-to.mjs"

const BLOCK = 512
const LONGEST_TEXT = 64 * 1024
const DEVICES = { 3: "a device", 4: "a device", 6: "a pipe", S: "a sparse file" }

const textOf = (block, from, to) => {
  const end = block.indexOf(0, from)
  return block.subarray(from, end < 0 || end > to ? to : end)
}

const numberOf = (block, from, to) => {
  // Large ones are binary, marked by the first bit.
  if ((block[from] & 0x80) !== 0) {
    let value = block[from] & 0x7f
    for (let at = from + 1; at < to; at += 1) value = value * 256 + block[at]
    if (!Number.isSafeInteger(value)) throw new Refused("a size in it is no size")
    return value
  }
  const digits = textOf(block, from, to).toString("latin1").trim()
  if (!/^[0-7]*$/.test(digits)) throw new Refused("a header in it is damaged")
  return digits === "" ? 0 : Number.parseInt(digits, 8)
}

const hasChecksum = (block) => {
  let sum = 0
  for (let at = 0; at < BLOCK; at += 1) sum += at >= 148 && at < 156 ? 32 : block[at]
  try {
    return sum === numberOf(block, 148, 156)
  } catch {
    return false
  }
}

/** Is this how a tar archive begins? */
export const isTar = (start) => start.length >= BLOCK && start[0] !== 0 && hasChecksum(start.subarray(0, BLOCK))

/** `27 path=name\n…` */
const paxOf = (bytes) => {
  const found = new Map()
  for (let at = 0; at < bytes.length; ) {
    const blank = bytes.indexOf(32, at)
    const length = Number(bytes.toString("latin1", at, blank))
    if (blank < 0 || !Number.isInteger(length) || length <= blank - at || at + length > bytes.length)
      throw new Refused("an extended header in it is damaged")
    const record = bytes.subarray(blank + 1, at + length - 1)
    const equals = record.indexOf(61)
    found.set(record.toString("latin1", 0, equals), record.subarray(equals + 1))
    at += length
  }
  return found
}

/** @param source what has `take(bytes)`, all of them or undefined at the end, and `some(most)` */
export const unpackTar = async (source, tree) => {
  const textBlock = async (size) => {
    if (size > LONGEST_TEXT) throw new Refused("a name in it is too long")
    const bytes = await source.take(Math.ceil(size / BLOCK) * BLOCK)
    if (bytes === undefined) throw new Refused("it ends in the middle")
    return bytes.subarray(0, size)
  }
  const content = async (size, hear) => {
    for (let left = size; left > 0; ) {
      const bytes = await source.some(left)
      if (bytes === undefined) throw new Refused("it ends in the middle")
      hear(bytes)
      left -= bytes.length
    }
    const rest = (BLOCK - (size % BLOCK)) % BLOCK
    if (rest > 0 && (await source.take(rest)) === undefined) throw new Refused("it ends in the middle")
  }
  let pax = new Map()
  let long = {}
  for (;;) {
    const block = await source.take(BLOCK)
    if (block === undefined) throw new Refused("it ends before its end")
    if (block.every((byte) => byte === 0)) break
    if (!hasChecksum(block)) throw new Refused("a header in it is damaged")
    const type = String.fromCharCode(block[156] || 48)
    const size = pax.has("size") ? Number(pax.get("size").toString("latin1")) : numberOf(block, 124, 136)
    if (!Number.isSafeInteger(size) || size < 0) throw new Refused("a size in it is no size")
    if (type === "x" || type === "g") {
      const found = paxOf(await textBlock(size))
      if (type === "x") pax = found
      continue
    }
    if (type === "L" || type === "K") {
      const text = await textBlock(size)
      const end = text.indexOf(0)
      long[type] = end < 0 ? text : text.subarray(0, end)
      continue
    }
    const isUstar = block.toString("latin1", 257, 262) === "ustar" && block[262] === 0
    const prefix = isUstar ? textOf(block, 345, 500) : Buffer.alloc(0)
    const short = textOf(block, 0, 100)
    const plain = prefix.length === 0 ? short : Buffer.concat([prefix, Buffer.from("/"), short])
    const name = nameOf(pax.get("path") ?? long.L ?? plain)
    const target = nameOf(pax.get("linkpath") ?? long.K ?? textOf(block, 157, 257))
    const mode = numberOf(block, 100, 108)
    if ([...pax.keys()].some((key) => key.startsWith("GNU.sparse."))) tree.refuse(name, DEVICES.S)
    pax = new Map()
    long = {}
    if (type === "0" || type === "7") {
      tree.count(size)
      // Old archives mark a folder by its name alone.
      const file = name.endsWith("/") && size === 0 ? tree.folder(name, mode) : tree.file(name, mode)
      await content(size, (bytes) => file.write(bytes))
      file?.end()
    } else if (type === "5") {
      tree.folder(name, mode)
      await content(size, () => {})
    } else if (type === "2") tree.link(name, target)
    else if (type === "1") tree.hardLink(name, target)
    else tree.refuse(name, DEVICES[type] ?? `of a kind that is not known (${JSON.stringify(type)})`)
  }
  // Whatever follows is read, since it is part of what was vouched for, and counted.
  for (let rest = await source.some(BLOCK * 128); rest !== undefined; rest = await source.some(BLOCK * 128))
    tree.count(rest.length)
}
