/** `files.list`: the workspace's files, one a line. */
import { type HostFunction, isOn, textIn, unusable } from "./function.ts"
import { walk, WalkEnded } from "./walk.ts"

export const listFiles: HostFunction = async (input, { files, outputBytes, signal }) => {
  const options = { path: textIn(input, "path"), glob: textIn(input, "glob"), hidden: isOn(input, "hidden"), signal }
  const lines: string[] = []
  let bytes = 0
  try {
    for await (const { shown } of walk(files, options)) {
      bytes += Buffer.byteLength(shown) + 1
      if (bytes > outputBytes) return unusable("too_large", options.path ?? ".")
      lines.push(`${shown}\n`)
    }
  } catch (error) {
    if (error instanceof WalkEnded) return error.failure
    throw error
  }
  return { ok: true, value: { value: lines.join("") } }
}
