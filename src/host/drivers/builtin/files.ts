/** `file.read`, `file.write`, `file.edit`: one text file of the workspace. */
import { type HostFunction, invalid, isOn, missing, textIn, unusable } from "./function.ts"

export const readFile: HostFunction = async (input, { files, outputBytes }) => {
  const path = textIn(input, "path")
  if (path === undefined) return missing("path")
  const found = await files.read(path, outputBytes)
  return found.ok ? { ok: true, value: { value: found.value.toString("utf8") } } : unusable(found.fault, path)
}

export const writeFile: HostFunction = async (input, { files }) => {
  const [path, content] = [textIn(input, "path"), textIn(input, "content")]
  if (path === undefined) return missing("path")
  if (content === undefined) return missing("content")
  const written = await files.write(path, Buffer.from(content), { append: isOn(input, "append") })
  return written.ok ? { ok: true, value: { value: content } } : unusable(written.fault, path)
}

const places = (text: string, part: string): number[] => {
  const found: number[] = []
  for (let at = text.indexOf(part); at >= 0 && found.length < 10_000; at = text.indexOf(part, at + part.length))
    found.push(at)
  return found
}
const lineAt = (text: string, at: number): number => text.slice(0, at).split("\n").length

/** By text and never by bytes that are not text: those would not survive it. */
export const editFile: HostFunction = async (input, { files, outputBytes }) => {
  const [path, before, after] = [textIn(input, "path"), textIn(input, "old"), textIn(input, "new")]
  if (path === undefined) return missing("path")
  if (before === undefined || before === "") return missing("old")
  if (after === undefined) return missing("new")
  const found = await files.read(path, outputBytes)
  if (!found.ok) return unusable(found.fault, path)
  const text = found.value.toString("utf8")
  if (!Buffer.from(text).equals(found.value)) return invalid(`\`${path}\` is not text`, "edit text files alone")
  const at = places(text, before)
  if (at.length === 0 || (at.length > 1 && !isOn(input, "all")))
    return {
      ok: false,
      code: at.length === 0 ? "caisson:not_found" : "caisson:ambiguous",
      message: at.length === 0 ? `\`old\` is not in \`${path}\`` : `\`old\` is in \`${path}\` ${at.length} times`,
      hint:
        at.length === 0
          ? "read the file, then give its text exactly"
          : "give more of the text around it, or `all: true`",
      details: { found: at.length },
    }
  const edited = text.split(before).join(after)
  const written = await files.write(path, Buffer.from(edited))
  if (!written.ok) return unusable(written.fault, path)
  return { ok: true, value: { value: { replaced: at.length, first_line: lineAt(text, at[0] ?? 0) } } }
}
