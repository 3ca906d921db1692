/**
 * What a driver asks for, as rows that can be compared with those of another day, and which of them want a second look.
 *
 * Guarantees: pure; of the same manifests the same rows, in one order.
 */
import type { DriverContract, ToolContract } from "../../manifest/types.ts"
import { runsOthers } from "../learn/propose.ts"
import type { PageRow } from "./page.ts"

const sandboxRows = ({ body }: DriverContract): readonly PageRow[] => {
  if (body.kind !== "cli") return []
  const { fs, exec, env } = body.cli.sandbox
  return [
    { text: `program ${body.cli.bin}`, ...(runsOthers(body.cli.bin) ? { risk: "runs what it is given" } : {}) },
    ...fs.read.map((glob) => ({
      text: `reads ${glob}`,
      ...(glob.startsWith("/") ? { risk: "outside of the workspace" } : {}),
    })),
    ...fs.write.map((glob) => ({
      text: `writes ${glob}`,
      ...(glob === "**" ? { risk: "anything in the workspace" } : {}),
    })),
    ...(exec.allow ? exec.spawn : []).map((name) => ({
      text: `starts ${name}`,
      ...(runsOthers(name) ? { risk: "runs what it is given" } : {}),
    })),
    ...env.pass.map((name) => ({ text: `variable ${name}` })),
  ]
}

const toolRows = ({ id, major, mutates, approval, requires }: ToolContract): readonly PageRow[] => [
  ...mutates.map(({ text, class: cls }) => ({
    text: `${id}@${major} changes ${text}`,
    ...(cls === "workspace" && !/^\/?(?:\*\*)?$/.test(text.slice("workspace:".length))
      ? {}
      : { risk: cls === "workspace" ? "anything in the workspace" : "outside of the workspace: it cannot be undone" }),
  })),
  ...(mutates.length > 0 && approval.class === "auto"
    ? [{ text: `${id}@${major} changes things unasked`, risk: "approval: auto" }]
    : []),
  ...requires.secrets.map((slug) => ({ text: `${id}@${major} is given the secret ${slug}`, risk: "a secret" })),
  ...requires.tools.map((tool) => ({ text: `${id}@${major} calls ${tool}` })),
]

export const asksOf = (driver: DriverContract, tools: readonly ToolContract[]): readonly PageRow[] => {
  const rows: readonly PageRow[] = [
    { text: `kind ${driver.body.kind}, version ${driver.version}` },
    ...sandboxRows(driver),
    ...driver.egress.map(({ text, wildcard, protocol }) => ({
      text: `reaches ${text}`,
      ...(wildcard ? { risk: "any name below it" } : protocol === "tcp" ? { risk: "any protocol" } : {}),
    })),
    ...tools.flatMap(toolRows),
  ]
  return rows
}

/** What came and what went, between the rows of two days. */
export const changesBetween = (before: readonly string[], now: readonly string[]): readonly PageRow[] => [
  ...now.filter((row) => !before.includes(row)).map((row) => ({ text: `+ ${row}`, risk: "new" })),
  ...before.filter((row) => !now.includes(row)).map((row) => ({ text: `- ${row}` })),
]
