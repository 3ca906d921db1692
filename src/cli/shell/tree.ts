/**
 * The command tree as plain data: what completion and the man page are written from.
 *
 * Guarantees: every command and flag that the program knows is here, and none that it hides; nothing here is told twice.
 */
import type { Command, Option } from "commander"

/** What a flag or an argument takes: `folder` and `file` are completed by the shell, `words` are all there are. */
export type Takes =
  | { readonly kind: "nothing" | "text" | "folder" | "file" }
  | { readonly kind: "words"; readonly words: readonly string[] }

export interface Flag {
  readonly long: string
  readonly short: string | undefined
  /** As help shows it: `-i, --input <json>`. */
  readonly shown: string
  readonly about: string
  readonly takes: Takes
  readonly repeatable: boolean
}

interface Argument {
  readonly name: string
  readonly takes: Takes
}

export interface Branch {
  /** As it is typed: `caisson grants create`. */
  readonly path: string
  readonly name: string
  readonly about: string
  readonly usage: string
  readonly flags: readonly Flag[]
  readonly arguments: readonly Argument[]
  readonly branches: readonly Branch[]
}

const folders: ReadonlySet<string> = new Set(["dir", "folder"])
const files: ReadonlySet<string> = new Set(["file", "path"])

const takesOf = (name: string, choices: readonly string[] | undefined): Takes => {
  if (choices !== undefined) return { kind: "words", words: choices }
  if (folders.has(name)) return { kind: "folder" }
  return files.has(name) ? { kind: "file" } : { kind: "text" }
}

const flagOf = (option: Option): Flag => ({
  long: option.long ?? "",
  short: option.short,
  shown: option.flags,
  about: option.description,
  takes:
    option.required || option.optional
      ? takesOf(/[<[]([^>\].]+)/.exec(option.flags)?.[1] ?? "", option.argChoices)
      : { kind: "nothing" },
  repeatable: option.description.includes("(repeatable"),
})

export const branchOf = (command: Command, above = ""): Branch => {
  const path = above === "" ? command.name() : `${above} ${command.name()}`
  const help = command.createHelp()
  return {
    path,
    name: command.name(),
    about: command.description(),
    usage: command.usage(),
    flags: help.visibleOptions(command).map(flagOf),
    arguments: command.registeredArguments.map((argument) => ({
      name: argument.name(),
      takes: takesOf(argument.name(), argument.argChoices),
    })),
    branches: help
      .visibleCommands(command)
      .filter((each) => each.name() !== "help")
      .map((each) => branchOf(each, path)),
  }
}

/** The branch and all below it. */
export const withAllBelow = (branch: Branch): readonly Branch[] => [branch, ...branch.branches.flatMap(withAllBelow)]
