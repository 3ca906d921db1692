/** How the first entry of a tar stream begins, as engines hand out files of a container; the rest is not read. */
import { extract } from "tar-stream"

interface FirstEntry {
  readonly type: string
  /** of a symbolic link */
  readonly target?: string
  readonly start: Buffer
}

export const firstEntry = (tar: NodeJS.ReadableStream, most: number): Promise<FirstEntry | undefined> =>
  new Promise((resolve) => {
    const unpack = extract()
    const settle = (entry?: FirstEntry): void => {
      resolve(entry)
      unpack.destroy()
      if ("destroy" in tar && typeof tar.destroy === "function") (tar as { destroy(): void }).destroy()
    }
    unpack.on("entry", (header, stream) => {
      const { type, linkname } = header
      const chunks: Buffer[] = []
      const end = (): void => {
        const start = Buffer.concat(chunks).subarray(0, most)
        settle({ type: type ?? "unknown", start, ...(typeof linkname === "string" ? { target: linkname } : {}) })
      }
      let size = 0
      stream.on("data", (piece) => {
        const chunk = piece as Buffer
        chunks.push(chunk)
        size += chunk.length
        if (size >= most) end()
      })
      stream.on("end", end)
    })
    unpack.on("error", () => settle())
    unpack.on("finish", () => settle())
    tar.on("error", () => settle())
    tar.pipe(unpack)
  })
