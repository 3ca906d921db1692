/** The tables of fields in docs/formats.md, between marks. */
import { effectClasses } from "../../../src/manifest/formats/aruntime/classes.ts"
import { formats } from "../../../src/manifest/formats/formats.ts"

const fieldTable = (id: string): string => {
  const rows = formats.find((format) => format.id === id)?.fields ?? []
  return [
    "| field | where it goes |",
    "|---|---|",
    ...rows.map(({ field, goes }) => `| \`${field}\` | ${goes} |`),
  ].join("\n")
}
const classTable = (): string =>
  [
    "| class | `risk_level` | `approval` | effects outside the workspace | files |",
    "|---|---|---|---|---|",
    ...effectClasses.map(
      ({ name, risk, approval, outside, files }) =>
        `| ${name} | ${risk} | \`${approval}\` | ${outside ? "assumed: asked about before it runs" : "none declared"} | ${files ? "none until annotated" : "none"} |`,
    ),
  ].join("\n")

export const withTables = (text: string): string =>
  text.replaceAll(
    /(<!-- table: (\S+) -->\n)[^]*?(\n<!-- end -->)/g,
    (_all, start: string, id: string, end: string) =>
      `${start}${id === "classes" ? classTable() : fieldTable(id)}${end}`,
  )
