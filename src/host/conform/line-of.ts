/** Where in a manifest an example stands, for reports that point there; undefined where it cannot be told. */
import { readFileSync } from "node:fs"

export const lineOf = (file: string, name: string): number | undefined => {
  let text: string
  try {
    text = readFileSync(file, "utf8")
  } catch {
    return undefined
  }
  const at = text.split("\n").findIndex((line) => {
    const said = /^\s*(?:-\s+)?(?:\{\s*)?(?:name|goal):\s*(.*)$/.exec(line)?.[1]
    return said !== undefined && [name, `"${name}"`, `'${name}'`].some((spelt) => said.startsWith(spelt))
  })
  return at < 0 ? undefined : at + 1
}
