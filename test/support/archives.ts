/** Archives as a test wants them, hostile ones included: no writer of archives would make most of these. */
import { crc32, deflateRawSync } from "node:zlib"

export interface TarMember {
  readonly name: string | Uint8Array
  readonly content?: Uint8Array | string
  /** `0` file, `1` hard link, `2` link, `3` and `4` devices, `5` folder, `6` pipe */
  readonly type?: string
  readonly link?: string
  readonly mode?: number
  /** what the header says instead of the content's length */
  readonly size?: number
}

const octal = (value: number, width: number): string => `${value.toString(8).padStart(width - 1, "0")}\0`

const tarHeader = ({ name, content = "", type = "0", link = "", mode = 0o755, size }: TarMember): Buffer => {
  const header = Buffer.alloc(512)
  Buffer.from(name as string).copy(header, 0, 0, 100)
  header.write(octal(mode, 8), 100)
  header.write(octal(0, 8) + octal(0, 8), 108)
  header.write(octal(size ?? Buffer.from(content as string).length, 12) + octal(0, 12), 124)
  header.write("        ", 148)
  header.write(type, 156)
  header.write(link, 157, 100)
  header.write("ustar\x0000", 257)
  let sum = 0
  for (const byte of header) sum += byte
  header.write(`${sum.toString(8).padStart(6, "0")}\0 `, 148)
  return header
}

export const tarOf = (members: readonly TarMember[]): Buffer =>
  Buffer.concat([
    ...members.flatMap((member) => {
      const content = Buffer.from((member.content ?? "") as string)
      return [tarHeader(member), content, Buffer.alloc((512 - (content.length % 512)) % 512)]
    }),
    Buffer.alloc(1024),
  ])

export interface ZipMember {
  readonly name: string | Uint8Array
  readonly content?: Uint8Array | string
  /** with the file's kind; 0: not made on Unix */
  readonly mode?: number
  readonly flags?: number
  readonly method?: 0 | 8 | 99
  /** what the directory says instead */
  readonly size?: number
  readonly crc?: number
  /** in the local header instead */
  readonly localName?: string
  /** of another member's header: its number */
  readonly sharing?: number
}

export const zipWith = (members: readonly ZipMember[]): Buffer => {
  const parts: Buffer[] = []
  const directory: Buffer[] = []
  const offsets: number[] = []
  let offset = 0
  for (const [index, member] of members.entries()) {
    const { mode = 0o100755, flags = 0x800, method = 8, localName, sharing } = member
    const name = Buffer.from(member.name as string)
    const content = Buffer.from((member.content ?? "") as string)
    const packed = method === 8 ? deflateRawSync(content) : content
    const fields = Buffer.alloc(26)
    fields.writeUInt16LE(20, 0)
    fields.writeUInt16LE(flags, 2)
    fields.writeUInt16LE(method, 4)
    fields.writeUInt16LE(0x21, 8)
    fields.writeUInt32LE(member.crc ?? crc32(content), 10)
    fields.writeUInt32LE(packed.length, 14)
    fields.writeUInt32LE(member.size ?? content.length, 18)
    fields.writeUInt16LE(name.length, 22)
    const tail = Buffer.alloc(14)
    tail.writeUInt32LE(mode * 0x10000, 6)
    const at = sharing === undefined ? offset : (offsets[sharing] ?? 0)
    tail.writeUInt32LE(at, 10)
    directory.push(Buffer.concat([Buffer.from([0x50, 0x4b, 1, 2, 20, mode === 0 ? 0 : 3]), fields, tail, name]))
    offsets[index] = at
    if (sharing !== undefined) continue
    const own = Buffer.from(localName ?? name)
    const local = Buffer.from(fields)
    local.writeUInt16LE(own.length, 22)
    parts.push(Buffer.concat([Buffer.from("PK\x03\x04"), local, own, packed]))
    offset += parts.at(-1)?.length ?? 0
  }
  const listed = Buffer.concat(directory)
  const end = Buffer.alloc(18)
  end.writeUInt16LE(members.length, 4)
  end.writeUInt16LE(members.length, 6)
  end.writeUInt32LE(listed.length, 8)
  end.writeUInt32LE(offset, 12)
  return Buffer.concat([...parts, listed, Buffer.from("PK\x05\x06"), end])
}
