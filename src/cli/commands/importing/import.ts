/**
 * `caisson import FORMAT PATH…`: tools of another format, written down as the AIP manifests that they amount to.
 *
 * Guarantees: nothing that is there is written over, no link is followed, and nothing is written where any of it is refused; each file is made
 * in one go. Does not: register anything, nor run what is no module that has to be run to be known (in a sandbox).
 */
import { cpSync } from "node:fs"
import { join, resolve } from "node:path"
import { stringify } from "yaml"
import type { ManifestKind } from "../../../manifest/types.ts"
import { exit } from "../../exit.ts"
import { operatorWord } from "../../reach/operator-word.ts"
import { diagnosticLines } from "../../render/diagnostics.ts"
import { resultJson, type Terminal } from "../../terminal.ts"
import { says } from "../../texts.ts"
import { inline } from "../../visible.ts"
import { stands, writeNew } from "../authoring/write-new.ts"
import type { ImportedManifest } from "./importer.ts"
import { importers } from "./importers.ts"

export interface ImportFlags {
  readonly to: string
  readonly json?: boolean
}

const NAMES: Readonly<Partial<Record<ManifestKind, string>>> = {
  tool: "TOOL.md",
  driver: "DRIVER.md",
  secrets: "SECRETS.md",
}

/** Of a module's folder, what no import needs. */
const LEFT = /\/(?:\.git|__pycache__)$/

const textOf = ({ front }: ImportedManifest): string =>
  `---\n${stringify(front, { lineWidth: 0, aliasDuplicateObjects: false, version: "1.2" })}---\n`

export const run = async (
  format: string,
  paths: readonly string[],
  flags: ImportFlags,
  terminal: Terminal,
): Promise<number> => {
  const importer = Object.hasOwn(importers, format) ? importers[format] : undefined
  if (importer === undefined) {
    terminal.say(`caisson: ${says.unknownFormat(inline(format), Object.keys(importers))}`)
    return exit.usage
  }
  const { annotations } = operatorWord(terminal)
  const {
    manifests,
    diagnostics,
    copies = [],
  } = await importer(
    paths.map((path) => resolve(path)),
    { annotations },
  )
  const folder = resolve(flags.to)
  const manifestFiles = manifests.map((each) => ({
    path: join(each.id, NAMES[each.doctype] ?? `${each.doctype.toUpperCase()}.md`),
    text: textOf(each),
  }))
  const files = manifestFiles.map((each) => ({ ...each, file: join(folder, each.path) }))
  const twice = files.filter(({ file }, index) => files.findIndex((other) => other.file === file) !== index)
  const beside = copies.map(({ id, name, from }) => ({ file: join(folder, id, name), from }))
  const there = [...files, ...beside].filter(({ file }) => stands(file))
  const mayWrite =
    files.length > 0 &&
    twice.length === 0 &&
    there.length === 0 &&
    diagnostics.every(({ severity }) => severity !== "error")
  for (const { file } of [...twice, ...there])
    terminal.say(
      `caisson: ${inline(file)} ${twice.some((each) => each.file === file) ? says.importedTwice : says.isThere}`,
    )
  const made = mayWrite ? writeNew(folder, manifestFiles) : undefined
  if (made?.ok === false) {
    terminal.say(`caisson: ${inline(made.message)}`)
    terminal.say(`fix: ${inline(made.fix)}`)
  }
  const isGood = made?.ok === true
  if (isGood)
    for (const { file, from } of beside)
      cpSync(from, file, { recursive: true, errorOnExist: true, force: false, filter: (path) => !LEFT.test(path) })
  const written = isGood ? [...files, ...beside].map(({ file }) => file) : []
  if (flags.json === true || !terminal.isInteractive) resultJson(terminal, { ok: isGood, written, diagnostics })
  else {
    for (const diagnostic of diagnostics)
      for (const line of diagnosticLines(diagnostic, terminal.paintResult)) terminal.result(line)
    for (const file of written) terminal.result(inline(file))
  }
  if (files.length === 0) terminal.say(`caisson: ${says.nothingImported(format)}`)
  return isGood ? exit.ok : exit.usage
}
