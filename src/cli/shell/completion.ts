/**
 * Scripts that let bash, zsh and fish complete `caisson`: commands, flags, the words a flag takes, folders and files.
 *
 * Guarantees: written from the command tree alone, so that what is offered exists; no process is started while a person
 * types; behind `--` of a command that runs another one, that command's own words are completed.
 */
import type { Branch, Flag, Takes } from "./tree.ts"
import { withAllBelow } from "./tree.ts"

export type Shell = "bash" | "zsh" | "fish"

const quoted = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`
/** For bash's `compgen -W`, which splits at newlines here, so that names of files may have spaces. */
const wordList = (words: readonly string[]): string => `$'${words.join("\\n")}'`
const namesOf = (flag: Flag): readonly string[] => (flag.short === undefined ? [flag.long] : [flag.long, flag.short])

/** What bash puts into COMPREPLY for one thing that is taken. */
const bashReply = (takes: Takes): string => {
  if (takes.kind === "words") return `COMPREPLY=($(compgen -W ${wordList(takes.words)} -- "$cur"))`
  if (takes.kind === "folder") return 'compopt -o filenames; COMPREPLY=($(compgen -d -- "$cur"))'
  if (takes.kind === "file") return 'compopt -o filenames; COMPREPLY=($(compgen -f -- "$cur"))'
  return "COMPREPLY=()"
}

const bashValues = (branch: Branch): readonly string[] =>
  branch.flags
    .filter((flag) => flag.takes.kind !== "nothing")
    .map((flag) => {
      const patterns = namesOf(flag).map((name) => quoted(`${branch.path} ${name}`))
      return `    ${patterns.join("|")}) ${bashReply(flag.takes)}; return ;;`
    })

const bashWords = (branch: Branch): string => {
  const words = [...branch.branches.map((each) => each.name), ...branch.flags.flatMap(namesOf)]
  const first = branch.arguments[0]?.takes
  const more =
    first?.kind === "file" || first?.kind === "folder"
      ? ` [[ $cur == -* ]] || { compopt -o filenames; COMPREPLY+=($(compgen -f -- "$cur")); };`
      : ""
  const offered = first?.kind === "words" ? [...first.words, ...words] : words
  return `    ${quoted(branch.path)}) COMPREPLY=($(compgen -W ${wordList(offered)} -- "$cur"));${more} ;;`
}

const bash = (tree: Branch): string => {
  const all = withAllBelow(tree)
  const below = all.filter((branch) => branch !== tree).map((branch) => quoted(branch.path))
  return `# caisson: completion for bash. To use it:  source <(caisson completion bash)
_caisson() {
  local cur=\${COMP_WORDS[COMP_CWORD]} before=\${COMP_WORDS[COMP_CWORD-1]} at=${quoted(tree.name)} i IFS=$'\\n'
  COMPREPLY=()
  for ((i = 1; i < COMP_CWORD; i++)); do
    if [[ \${COMP_WORDS[i]} == -- ]]; then
      if ((i == COMP_CWORD - 1)); then COMPREPLY=($(compgen -c -- "$cur"))
      else compopt -o filenames; COMPREPLY=($(compgen -f -- "$cur")); fi
      return
    fi
    case "$at \${COMP_WORDS[i]}" in
    ${below.join("|")}) at="$at \${COMP_WORDS[i]}" ;;
    esac
  done
  case "$at $before" in
${all.flatMap(bashValues).join("\n")}
  esac
  case "$at" in
${all.map(bashWords).join("\n")}
  esac
}
complete -F _caisson ${tree.name}
`
}

/** zsh reads bash's own form; a second description of the same would only drift from the first. */
const zsh = (tree: Branch): string => `#compdef ${tree.name}
# caisson: completion for zsh. To use it:  source <(caisson completion zsh)
(( $+functions[compdef] )) || { autoload -Uz compinit && compinit }
autoload -Uz bashcompinit && bashcompinit
# What bash alone has.
(( $+functions[compopt] )) || compopt() { :; }
${bash(tree).split("\n").slice(1).join("\n")}`

const fishText = (text: string): string => `'${text.replaceAll("\\", "\\\\").replaceAll("'", "\\'")}'`

const fishTakes = (takes: Takes): string => {
  if (takes.kind === "nothing") return ""
  if (takes.kind === "words") return ` -x -a ${fishText(takes.words.join(" "))}`
  if (takes.kind === "folder") return " -x -a '(__fish_complete_directories)'"
  return takes.kind === "file" ? " -r -F" : " -x"
}

const fishBranch = (branch: Branch): readonly string[] => {
  const when = `-n ${fishText(`__caisson_at ${branch.path}`)}`
  const lines = branch.branches.map(
    (each) => `complete -c caisson ${when} -f -a ${fishText(each.name)} -d ${fishText(each.about)}`,
  )
  for (const flag of branch.flags) {
    const short = flag.short === undefined ? "" : ` -s ${flag.short.slice(1)}`
    lines.push(
      `complete -c caisson ${when} -l ${flag.long.slice(2)}${short}${fishTakes(flag.takes)} -d ${fishText(flag.about)}`,
    )
  }
  const first = branch.arguments[0]?.takes
  if (first?.kind === "words") lines.push(`complete -c caisson ${when} -f -a ${fishText(first.words.join(" "))}`)
  else if (first?.kind === "file") lines.push(`complete -c caisson ${when} -F`)
  return lines
}

const fish = (tree: Branch): string => {
  const all = withAllBelow(tree)
  return `# caisson: completion for fish. To use it:  caisson completion fish | source
function __caisson_at
  set -l at ${tree.name}
  for word in (commandline -opc)[2..-1]
    if contains -- "$at $word" ${all.map((branch) => fishText(branch.path)).join(" ")}
      set at "$at $word"
    end
  end
  test "$at" = "$argv"
end
complete -c caisson -f
${all.flatMap(fishBranch).join("\n")}
`
}

export const completionOf = (shell: Shell, tree: Branch): string => ({ bash, zsh, fish })[shell](tree)
