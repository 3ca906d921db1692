/**
 * Digests of what a layer's files hold, and those below it.
 *
 * Guarantees: a file with many names is read once; what is read, and what holes are read as, is bounded together, and
 * reaching that throws `LayerRefused`. Reading takes turns with other work of the process. Links are not followed.
 */
import { closeSync, constants, openSync, type Stats } from "node:fs"
import { digestFd } from "../digest.ts"
import { LayerRefused, type LayerLimits } from "../limits.ts"
import { below, type BytePath } from "../names.ts"

const FLAGS = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK

export class LayerDigests {
  readonly #upper: string
  readonly #limits: LayerLimits
  readonly #breathe: () => Promise<void> | undefined
  #digested = 0
  #holes = 0
  /** of files with several names, by inode */
  readonly #linked = new Map<number, string>()
  constructor(upper: string, limits: LayerLimits, breathe: () => Promise<void> | undefined) {
    this.#upper = upper
    this.#limits = limits
    this.#breathe = breathe
  }

  async ofUpper(path: BytePath, stats: Stats): Promise<string> {
    const known = this.#linked.get(stats.ino)
    if (known !== undefined) return known
    this.#holes += Math.max(0, stats.size - stats.blocks * 512)
    if (this.#holes > this.#limits.maxHoleBytes) {
      throw new LayerRefused(
        "too-many-bytes",
        `the changed files have more than ${this.#limits.maxHoleBytes} bytes of holes`,
      )
    }
    const digest = await this.of(openSync(below(this.#upper, path), FLAGS), stats.size)
    if (stats.nlink > 1) this.#linked.set(stats.ino, digest)
    return digest
  }

  /** Undefined: it is not there, or none that can be read. */
  async ofLower(path: Buffer, size: number): Promise<string | undefined> {
    try {
      return await this.of(openSync(path, FLAGS), size)
    } catch (error) {
      if (error instanceof LayerRefused) throw error
      return undefined
    }
  }

  /** Takes over the descriptor. */
  async of(fd: number, size: number): Promise<string> {
    try {
      this.#digested += size
      if (this.#digested > this.#limits.maxDigestBytes) {
        throw new LayerRefused(
          "too-many-bytes",
          `the changed files hold more than ${this.#limits.maxDigestBytes} bytes`,
        )
      }
      return await digestFd(fd, size, this.#breathe)
    } finally {
      closeSync(fd)
    }
  }
}
