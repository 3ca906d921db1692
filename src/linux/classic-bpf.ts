/** Classic BPF as the kernel reads it, for filters of system calls and of packets alike. Pure. */
export interface Instruction {
  readonly code: number
  readonly jt: number
  readonly jf: number
  readonly k: number
}

export const statement = (code: number, k: number): Instruction => ({ code, jt: 0, jf: 0, k })
export const jump = (code: number, k: number, jt: number, jf: number): Instruction => {
  if (jt > 255 || jf > 255) throw new Error("bpf: a jump is too far")
  return { code, jt, jf, k }
}

export const assemble = (program: readonly Instruction[]): Buffer => {
  const bytes = Buffer.alloc(program.length * 8)
  program.forEach(({ code, jt, jf, k }, index) => {
    bytes.writeUInt16LE(code, index * 8)
    bytes.writeUInt8(jt, index * 8 + 2)
    bytes.writeUInt8(jf, index * 8 + 3)
    bytes.writeUInt32LE(k >>> 0, index * 8 + 4)
  })
  return bytes
}
