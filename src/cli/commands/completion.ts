/** `caisson completion SHELL`: the script on stdout; `man`: the manual page. */
import type { Command } from "commander"
import { exit } from "../exit.ts"
import type { Shell } from "../shell/completion.ts"
import { completionOf } from "../shell/completion.ts"
import { manOf } from "../shell/man.ts"
import { branchOf } from "../shell/tree.ts"
import type { Terminal } from "../terminal.ts"
import { exitCodes, manFiles } from "../texts.ts"

export const run = (what: Shell | "man", program: Command, version: string, terminal: Terminal): number => {
  const tree = branchOf(program)
  terminal.result(what === "man" ? manOf(tree, version, exitCodes, manFiles) : completionOf(what, tree))
  return exit.ok
}
