/** One frame as a WebSocket client sends it. */
export function clientFrame(
  payload: Buffer,
  options: { final?: boolean; opcode?: number; mask?: Buffer; reserved?: number } = {},
): Buffer {
  const mask = options.mask ?? Buffer.from([1, 2, 3, 4])
  const length = Buffer.alloc(payload.length < 126 ? 1 : payload.length < 65_536 ? 3 : 9)
  length[0] = 0x80 | (payload.length < 126 ? payload.length : payload.length < 65_536 ? 126 : 127)
  if (length.length === 3) length.writeUInt16BE(payload.length, 1)
  if (length.length === 9) length.writeBigUInt64BE(BigInt(payload.length), 1)
  const first = ((options.final ?? true) ? 0x80 : 0) | (options.reserved ?? 0) | (options.opcode ?? 1)
  const masked = Buffer.from(payload.map((byte, at) => byte ^ (mask[at & 3] as number)))
  return Buffer.concat([Buffer.from([first]), length, mask, masked])
}
