/**
 * Programs that run text given to them as an argument, and programs that start another one: which of their arguments
 * are program text, and which make up a command. A table, nothing else; program-text.ts reads it.
 *
 * Guarantees: nothing about programs that are not listed. Assumes: a driver's own scripts run no argument as code.
 */
export type Operands =
  /** arguments of the program itself */
  | "data"
  /** the first is program text, unless an option gave it or a file of it (`awk`, `sed`) */
  | "program"
  /** all are program text, joined by the program (`watch`) */
  | "programs"
  /** the first is a place, the others are program text (`ssh HOST …`, `sqlite3 FILE …`) */
  | "place-then-program"
  /** a command: another program and its arguments (`env`, `xargs`) */
  | "command"
  /** the first is a value, then comes a command (`timeout 5 …`) */
  | "value-then-command"
  /** `find`: commands between `-exec` and `;` */
  | "expression"
  /** `make`: `NAME=text` is expanded, functions such as `$(shell …)` included */
  | "assignments"
  /** `deno eval TEXT` */
  | "subcommand"

export interface Interpreter {
  /** `query`: statements for a database; a whole one may be the input, a part of one may not */
  readonly language?: "code" | "query"
  readonly operands: Operands
  /** one-letter options whose value is program text; they may stand in a cluster (`-ne`) and hold it themselves */
  readonly code?: string
  /** a one-letter option that makes the first operand the program (`sh -c`) */
  readonly switch?: string
  /** options by their whole name whose value is program text */
  readonly codeOptions?: readonly string[]
  /** one-letter options and options by name that take another value */
  readonly takes?: string
  readonly takesOptions?: readonly string[]
  /** options that name a file of program text, so that no operand is one */
  readonly files?: readonly string[]
  /** behind a `-c NAME=`, names whose value is mere data */
  readonly harmless?: RegExp
  /** one-letter options behind whose value everything belongs to the program text (`python -m x …`) */
  readonly last?: string
  /** without operand or code option the program text comes by stdin */
  readonly stdin?: boolean
}

const table: Record<string, Interpreter> = {}
const add = (names: string, rule: Interpreter): void => {
  for (const name of names.split(" ")) table[name] = Object.freeze(rule)
}

add("sh bash dash ash zsh ksh mksh pdksh yash rbash csh tcsh", {
  operands: "data",
  switch: "c",
  takes: "oO",
  takesOptions: ["--rcfile", "--init-file"],
  stdin: true,
})
add("fish nu xonsh", {
  operands: "data",
  code: "cC",
  codeOptions: ["--command", "--commands", "--init-command"],
  stdin: true,
})
add("pwsh powershell", {
  operands: "data",
  code: "cC",
  codeOptions: ["-Command", "-command", "-EncodedCommand", "-encodedcommand", "-CommandWithArgs"],
  takesOptions: ["-File", "-file", "-ExecutionPolicy", "-WorkingDirectory"],
  stdin: true,
})
add("python pypy jython", { operands: "data", code: "c", takes: "mWX", last: "cm", stdin: true })
add("perl", { operands: "data", code: "eEMm", takes: "I", stdin: true })
add("ruby jruby truffleruby", { operands: "data", code: "e", takes: "rICEFTWx", stdin: true })
add("node nodejs bun", {
  operands: "data",
  code: "ep",
  codeOptions: ["--eval", "--print", "--import", "--experimental-loader", "--loader"],
  takes: "rC",
  takesOptions: ["--require", "--conditions", "--input-type", "--env-file"],
  stdin: true,
})
add("deno", { operands: "subcommand" })
add("php", { operands: "data", code: "rRBEd", takes: "fctSzF", codeOptions: ["--run", "--define"], stdin: true })
add("lua luajit luau texlua", { operands: "data", code: "e", takes: "l", stdin: true })
add("tclsh wish jimsh", { operands: "data", stdin: true })
add("expect", { operands: "data", code: "c", stdin: true })
add("osascript", { operands: "data", code: "e", takes: "l", stdin: true })
add("r rscript littler", { operands: "data", code: "e", codeOptions: ["--eval", "--expr"], takes: "f", stdin: true })
add("julia octave gnuplot guile racket elixir iex scala groovy ghc runghc ocaml raku rakudo swipl gst", {
  operands: "data",
  code: "eEcg",
  codeOptions: ["--eval", "--print", "--expr", "--persist"],
  stdin: true,
})
add("erl escript sbcl clisp ecl emacs vim vi nvim ex view gdb lldb", {
  operands: "data",
  code: "cx",
  codeOptions: [
    "-eval",
    "--eval",
    "-ex",
    "-iex",
    "--eval-command",
    "--execute",
    "-o",
    "-O",
    "--cmd",
    "-S",
    "--one-line",
  ],
  stdin: true,
})
add("awk gawk mawk nawk original-awk bwk goawk", {
  operands: "program",
  code: "e",
  codeOptions: ["--source"],
  takes: "vFilE",
  takesOptions: ["--assign", "--field-separator", "--include", "--load"],
  files: ["-f", "--file", "-E", "--exec"],
})
add("sed gsed ssed", {
  operands: "program",
  code: "e",
  codeOptions: ["--expression"],
  takes: "l",
  takesOptions: ["--line-length"],
  files: ["-f", "--file"],
})
add("dc", { operands: "data", code: "e", codeOptions: ["--expression"], takes: "f", stdin: true })
add("m4", { operands: "data", code: "D", codeOptions: ["--define"], stdin: true })

add("psql", { language: "query", operands: "data", code: "c", codeOptions: ["--command"] })
add("mysql mariadb", { language: "query", operands: "data", code: "e", codeOptions: ["--execute", "--init-command"] })
add("sqlite3 sqlite duckdb", {
  language: "query",
  operands: "place-then-program",
  codeOptions: ["-cmd", "-c", "-s"],
  takesOptions: ["-init", "-separator", "-newline", "-nullvalue", "-vfs", "-mmap", "-maxsize", "-heap"],
})
add("mongosh mongo", { operands: "data", codeOptions: ["--eval"] })

add("env", {
  operands: "command",
  code: "S",
  codeOptions: ["--split-string"],
  takes: "uCa",
  takesOptions: ["--unset", "--chdir", "--argv0"],
})
add(
  "nohup setsid time command exec busybox toybox fakeroot eatmydata catchsegv dbus-run-session xvfb-run entr chronic ifne unbuffer",
  {
    operands: "command",
    takes: "fo",
  },
)
add("nice", { operands: "command", takes: "n", takesOptions: ["--adjustment"] })
add("ionice", { operands: "command", takes: "cnpPu", takesOptions: ["--class", "--classdata"] })
add("stdbuf", { operands: "command", takes: "ioe", takesOptions: ["--input", "--output", "--error"] })
add("xargs", {
  operands: "command",
  takes: "adEILnPs",
  takesOptions: ["--arg-file", "--delimiter", "--max-args", "--max-lines", "--max-procs", "--replace", "--max-chars"],
})
add("sudo doas", {
  operands: "command",
  takes: "ugpCDhRrTtU",
  takesOptions: ["--user", "--group", "--chdir", "--prompt"],
})
add("setpriv unshare nsenter prlimit systemd-run strace ltrace valgrind sshpass", {
  operands: "command",
  takes: "tSGrwWopsuEIaXbOPfde",
})
add("timeout gtimeout", { operands: "value-then-command", takes: "sk", takesOptions: ["--signal", "--kill-after"] })
add("chroot taskset chrt", { operands: "value-then-command" })
add("flock", {
  operands: "value-then-command",
  code: "c",
  codeOptions: ["--command"],
  takes: "wE",
  takesOptions: ["--timeout", "--wait", "--conflict-exit-code"],
})
add("su runuser script", { operands: "data", code: "c", codeOptions: ["--command", "--session-command"] })
add("ssh rsh autossh", { operands: "place-then-program", code: "o", takes: "BbcDEeFIiJLlmOpQRSWw" })
add("scp sftp", { operands: "data", code: "oSD" })
add("rsync", { operands: "data", code: "e", codeOptions: ["--rsh", "--rsync-path"] })
add("watch", { operands: "programs", takes: "n", takesOptions: ["--interval"] })
add("parallel rush", { operands: "programs", takes: "jaI", takesOptions: ["--jobs", "--arg-file"] })
add("tmux screen", { operands: "programs" })
add("find gfind", { operands: "expression" })
add("fd fdfind", { operands: "data", code: "xX", codeOptions: ["--exec", "--exec-batch"] })
add("make gmake", { operands: "assignments", codeOptions: ["--eval", "-E"], takes: "fCIjloW" })
add("git", {
  operands: "data",
  code: "cux",
  codeOptions: ["--upload-pack", "--receive-pack", "--exec", "--exec-path", "--extcmd", "--config", "--config-env"],
  harmless: /^(?:user|author|committer)\.(?:name|email)=/,
})
add("tar bsdtar gtar", {
  operands: "data",
  code: "IF",
  codeOptions: [
    "--to-command",
    "--checkpoint-action",
    "--use-compress-program",
    "--rsh-command",
    "--rmt-command",
    "--info-script",
    "--new-volume-script",
  ],
  takes: "fCTXbgHKLNV",
})
add("zip", { operands: "data", codeOptions: ["-TT", "--unzip-command"] })
add("sort", { operands: "data", codeOptions: ["--compress-program"] })
add("split", { operands: "data", codeOptions: ["--filter"] })
add("man", { operands: "data", code: "PH", codeOptions: ["--pager", "--html"] })
add("rg", { operands: "data", codeOptions: ["--pre", "--hostname-bin"] })
add("wget", { operands: "data", code: "e", codeOptions: ["--execute", "--use-askpass"] })
add("tcpdump", { operands: "data", code: "z" })
add("go", { operands: "data", codeOptions: ["-exec", "--exec", "-toolexec", "--toolexec", "-vettool"] })

/** `/usr/bin/python3.11` → `python`; undefined: the program is not known to run text. */
export const interpreterOf = (program: string): { readonly name: string; readonly rule: Interpreter } | undefined => {
  const base = program.slice(program.lastIndexOf("/") + 1)
  for (const name of [
    base,
    base.replace(/[-.]?\d[\d.]*$/, ""),
    base.toLowerCase().replace(/(?:[-.]?\d[\d.]*)?(?:\.exe)?$/, ""),
  ]) {
    const rule = Object.hasOwn(table, name) ? table[name] : undefined
    if (rule !== undefined) return { name: base, rule }
  }
  return undefined
}
