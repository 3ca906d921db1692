/** Builds ClientHellos byte by byte, so that each part can be made wrong. */
const u8 = (n: number): Buffer => Buffer.from([n])
const u16 = (n: number): Buffer => Buffer.from([n >> 8, n & 0xff])
const vector8 = (body: Buffer): Buffer => Buffer.concat([u8(body.length), body])
const vector16 = (body: Buffer): Buffer => Buffer.concat([u16(body.length), body])

export const extension = (type: number, body: Buffer): Buffer => Buffer.concat([u16(type), vector16(body)])

export const serverName = (...names: readonly (string | Buffer)[]): Buffer =>
  extension(
    0,
    vector16(
      Buffer.concat(names.map((name) => Buffer.concat([u8(0), vector16(Buffer.from(name as string, "latin1"))]))),
    ),
  )

export const alpn = (...names: readonly string[]): Buffer =>
  extension(16, vector16(Buffer.concat(names.map((name) => vector8(Buffer.from(name, "latin1"))))))

export interface HelloParts {
  readonly version?: number
  readonly session?: Buffer
  readonly suites?: Buffer
  readonly compression?: Buffer
  readonly extensions?: readonly Buffer[] | undefined
  readonly after?: Buffer
}

export function handshakeMessage(parts: HelloParts): Buffer {
  const body = Buffer.concat([
    u16(parts.version ?? 0x0303),
    Buffer.alloc(32, 7),
    vector8(parts.session ?? Buffer.alloc(32, 9)),
    vector16(parts.suites ?? Buffer.from([0x0a, 0x0a, 0x13, 0x01])),
    vector8(parts.compression ?? u8(0)),
    ...(parts.extensions === undefined ? [] : [vector16(Buffer.concat(parts.extensions))]),
    parts.after ?? Buffer.alloc(0),
  ])
  return Buffer.concat([u8(1), u8(0), u16(body.length), body])
}

export const record = (body: Buffer, type = 22, version = 0x0301): Buffer =>
  Buffer.concat([u8(type), u16(version), vector16(body)])

export const hello = (parts: HelloParts): Buffer => record(handshakeMessage(parts))

/** the same message in records of `size` bytes */
export function fragmented(message: Buffer, size: number): Buffer {
  const records: Buffer[] = []
  for (let at = 0; at < message.length; at += size) records.push(record(message.subarray(at, at + size)))
  return Buffer.concat(records)
}
