/** Where in a manifest an example stands, for reports that point there; undefined where it cannot be told. */
import { readBounded } from "../../manifest/read/bounded.ts"

export const lineOf = (file: string, name: string): number | undefined => {
  const bytes = readBounded(file)
  if (typeof bytes === "string") return undefined
  const text = Buffer.from(bytes).toString("utf8")
  const at = text.split("\n").findIndex((line) => {
    const said = /^\s*(?:-\s+)?(?:\{\s*)?(?:name|goal):\s*(.*)$/.exec(line)?.[1]
    return said !== undefined && [name, `"${name}"`, `'${name}'`].some((spelt) => said.startsWith(spelt))
  })
  return at < 0 ? undefined : at + 1
}
