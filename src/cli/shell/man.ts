/**
 * The manual page, in roff, written from the command tree: `caisson completion man | man -l -`, and `dist/caisson.1` of a
 * build.
 *
 * Guarantees: every command with its flags is there; text never becomes a request of roff.
 */
import type { Branch } from "./tree.ts"
import { withAllBelow } from "./tree.ts"

/** Backslashes, hyphens that are typed, and a dot or quote at the start of a line mean something to roff. */
const roff = (text: string): string =>
  text
    .replaceAll("\\", "\\e")
    .replaceAll("…", "...")
    .replaceAll("-", "\\-")
    .replaceAll(
      /[^\x00-\x7f]/gu,
      (sign) => `\\[u${(sign.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, "0")}]`,
    )
    .split("\n")
    .map((line) => (/^[.']/.test(line) ? `\\&${line}` : line))
    .join("\n")

const flagLines = (branch: Branch): readonly string[] =>
  branch.flags
    .filter((flag) => branch.branches.length === 0 || (flag.long !== "--help" && flag.long !== "--version"))
    .filter((flag) => flag.long !== "--help" && flag.long !== "--version")
    .flatMap((flag) => [".TP", `.B ${roff(flag.shown)}`, roff(flag.about)])

const commandLines = (branch: Branch): readonly string[] => [
  `.SS ${roff(`${branch.path} ${branch.usage}`)}`,
  roff(branch.about),
  ...flagLines(branch),
]

const section = (name: string, lines: readonly string[]): readonly string[] => [`.SH ${name}`, ...lines]

export const manOf = (tree: Branch, version: string, exitCodes: string, files: readonly string[]): string =>
  [
    `.TH CAISSON 1 "" "caisson ${roff(version)}" "User Commands"`,
    ...section("NAME", ["caisson \\- a sealed execution host for the tools of agents"]),
    ...section("SYNOPSIS", [".B caisson", roff("COMMAND [ARGUMENT]... [FLAG]...")]),
    ...section("DESCRIPTION", [
      roff(tree.about),
      ".PP",
      roff("Every command knows -h, --help; `caisson -V` tells the version."),
    ]),
    ...section(
      "COMMANDS",
      withAllBelow(tree)
        .filter((branch) => branch !== tree)
        .flatMap(commandLines),
    ),
    ...section(
      "EXIT STATUS",
      exitCodes
        .split("\n")
        .filter((line) => line.trim() !== "")
        .flatMap((line) => [roff(line.trim()), ".br"]),
    ),
    ...section(
      "FILES",
      files.flatMap((line) => [roff(line), ".br"]),
    ),
    "",
  ].join("\n")
