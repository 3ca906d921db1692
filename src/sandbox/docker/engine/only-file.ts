/** The first file of a tar stream, as engines hand out files of a container. */
import { pipeline } from "node:stream/promises"
import { extract } from "tar-stream"

export const onlyFile = async (tar: NodeJS.ReadableStream): Promise<Buffer | undefined> => {
  let content: Buffer | undefined
  const unpack = extract()
  unpack.on("entry", (header, stream, next) => {
    const chunks: Buffer[] = []
    stream.on("data", (chunk) => chunks.push(chunk as Buffer))
    stream.on("end", () => {
      if (header.type === "file") content ??= Buffer.concat(chunks)
      next()
    })
  })
  await pipeline(tar, unpack)
  return content
}
