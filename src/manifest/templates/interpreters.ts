/**
 * Programs that run text given to them as an argument, and programs that start another one: which of their arguments
 * are program text, and which make up a command. A table, nothing else; program-text.ts reads it.
 *
 * Guarantees: nothing about programs that are not listed. Assumes: a driver's own scripts run no argument as code.
 */
type Operands =
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
  /** what it reads from stdin is appended to its command, or put in the place of a mark (`xargs`) */
  readonly feeds?: boolean
  /** all that it reads from stdin is run, whatever its operands are (`at`, `ed`) */
  readonly runsStdin?: boolean
  /** a word that begins with `+` is program text (`vim +cmd`) */
  readonly plus?: boolean
  /** one-letter flags with which an operand can be a command, and not just a file (`perl -n`: `cmd|`) */
  readonly openers?: string
  /** subcommands behind which everything is program text, and those behind which a command stands */
  readonly textAfter?: readonly string[]
  readonly commandAfter?: readonly string[]
  /** options whose value is the program to be started */
  readonly starts?: string
}

/** Variables that programs take code, options or programs from: setting one is as good as program text. */
export const isSteeringVariable = (name: string): boolean =>
  /^(?:LD_|DYLD_|BASH_|GIT_(?!AUTHOR_|COMMITTER_)|PYTHON|PERL|RUBY|NODE_|NPM_|LUA_|R_|JAVA_|JDK_|_JAVA|DOTNET_|PHP|GCONV_|AWK|LESS|RSYNC_|CVS_|SSH_|GPG_|MAKE|GUILE_|TCL|XDG_|OPENSSL_|CURL_)/.test(
    name,
  ) || steeringVariables.has(name)
const steeringVariables: ReadonlySet<string> = new Set(
  "ENV PATH SHELL HOME IFS PS1 PS2 PS4 PROMPT_COMMAND ZDOTDIR FPATH PAGER MANPAGER EDITOR VISUAL BROWSER TAR_OPTIONS TAPE GREP_OPTIONS CLASSPATH VIMINIT EXINIT EMACSLOADPATH SUDO_ASKPASS SUDO_EDITOR CC CXX".split(
    " ",
  ),
)

const table: Record<string, Interpreter> = {}
const add = (names: string, rule: Interpreter): void => {
  for (const name of names.split(" ")) table[name] = Object.freeze(rule)
}

add("sh bash dash ash zsh ksh mksh lksh oksh pdksh posh yash rbash rzsh csh tcsh rc es osh ysh oil ion", {
  operands: "data",
  switch: "c",
  takes: "oO",
  takesOptions: ["--rcfile", "--init-file", "--emulate"],
  stdin: true,
})
add("fish nu xonsh elvish", {
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
add("python pypy jython ipython micropython bpython graalpy hy", {
  operands: "data",
  code: "c",
  takes: "mWX",
  last: "cm",
  starts: "m",
  stdin: true,
})
add("perl", { operands: "data", code: "eEMm", takes: "I", openers: "np", stdin: true })
add("ruby jruby truffleruby", { operands: "data", code: "e", takes: "rICEFTWx", stdin: true })
add("node nodejs bun ts-node tsx qjs js d8 jjs", {
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
add(
  "julia octave gnuplot guile racket elixir iex scala kotlin groovy swift crystal ghc runghc ocaml raku rakudo swipl gst",
  {
    operands: "data",
    code: "eEcg",
    codeOptions: ["--eval", "--print", "--expr", "--persist"],
    stdin: true,
  },
)
add("scheme mit-scheme chicken csi gforth maxima gp sage matlab bpftrace stap jshell", {
  operands: "data",
  code: "ecr",
  codeOptions: ["--eval", "-eval", "--expression"],
  stdin: true,
})
add("less more most", { operands: "data", plus: true })
add("at batch crontab ed red mail mailx ftp lftp", { operands: "data", runsStdin: true })
add("curl", { operands: "data", files: ["-K", "--config"], takes: "odHFATXubcemrwxyYzCDEtPQU" })
add("gs", { operands: "data", code: "c" })
add("rpm", { operands: "data", code: "E", codeOptions: ["--eval", "--define", "-D"] })
add("gcc cc clang", { operands: "data", codeOptions: ["-wrapper", "-fplugin", "-specs"] })
add("npx bunx uvx", {
  operands: "command",
  code: "c",
  codeOptions: ["--call"],
  takes: "p",
  takesOptions: ["--package", "--from", "--with"],
})
add("npm pnpm yarn", {
  operands: "data",
  code: "c",
  codeOptions: ["--call"],
  takes: "p",
  commandAfter: ["exec", "x", "dlx"],
})
// What they start is named behind a word of theirs; a package of that name is fetched where there is none.
add(
  "uv pipx poetry pdm hatch rye pipenv conda mamba micromamba bundle rbenv pyenv nodenv asdf mise direnv volta perlbrew docker podman nerdctl kubectl",
  { operands: "data", commandAfter: ["run", "exec", "x"] },
)
add("nix nix-shell nix-instantiate nix-build", {
  operands: "data",
  codeOptions: ["--run", "--command", "-E", "--expr", "--apply"],
})
add("ghci clojure clj coffee bb plackup", { operands: "data", code: "e", codeOptions: ["--eval"], stdin: true })
add("bc", { operands: "data", code: "e", codeOptions: ["--expression"], stdin: true })
// Their programs can start others: `system`, `exec`, `tee >`.
add("mlr miller", { operands: "data", textAfter: ["put", "filter", "tee", "split"] })
add("socat", { operands: "programs" })
add("install", { operands: "data", codeOptions: ["--strip-program"] })
add("apt apt-get", { operands: "data", code: "oc", codeOptions: ["--option", "--config-file"] })
add("mosh", { operands: "place-then-program", codeOptions: ["--ssh", "--server"] })
add("nc ncat", { operands: "data", code: "ec", codeOptions: ["--exec", "--sh-exec"] })
add("hyperfine", { operands: "programs" })
add("pandoc", { operands: "data", code: "FL", codeOptions: ["--filter", "--lua-filter", "--pdf-engine"] })
add("erl escript sbcl clisp ecl emacs vim vi nvim ex view gvim vimdiff rvim gdb lldb", {
  operands: "data",
  plus: true,
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
add("awk gawk mawk nawk original-awk bwk goawk frawk", {
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
add("clickhouse clickhouse-client trino presto cqlsh influx", {
  language: "query",
  operands: "data",
  code: "qe",
  codeOptions: ["--query", "--execute", "-execute"],
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
  feeds: true,
  takes: "adEILnPs",
  takesOptions: [
    "--arg-file",
    "--delimiter",
    "--max-args",
    "--max-lines",
    "--max-procs",
    "--max-chars",
    "--process-slot-var",
  ],
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
add("su runuser script sg", { operands: "data", code: "c", codeOptions: ["--command", "--session-command"] })
add("ssh rsh autossh", { operands: "place-then-program", code: "o", takes: "BbcDEeFIiJLlmOpQRSWw" })
add("scp sftp", { operands: "data", code: "oSD" })
add("rsync", { operands: "data", code: "e", codeOptions: ["--rsh", "--rsync-path"] })
add("watch", { operands: "programs", takes: "n", takesOptions: ["--interval"] })
add("parallel rush", { operands: "programs", runsStdin: true, takes: "jaI", takesOptions: ["--jobs", "--arg-file"] })
add("tmux screen", { operands: "programs" })
add("find gfind", { operands: "expression" })
add("fd fdfind", { operands: "data", code: "xX", codeOptions: ["--exec", "--exec-batch"] })
add("make gmake", {
  operands: "assignments",
  files: ["-f", "--file", "--makefile"],
  codeOptions: ["--eval", "-E"],
  takes: "CIjloW",
})
add("git", {
  operands: "data",
  code: "cux",
  codeOptions: [
    "--upload-pack",
    "--receive-pack",
    "--exec",
    "--exec-path",
    "--extcmd",
    "--config",
    "--config-env",
    "--open-files-in-pager",
    "--sendmail-cmd",
    "--to-cmd",
    "--cc-cmd",
    "--env-filter",
    "--tree-filter",
    "--index-filter",
    "--parent-filter",
    "--msg-filter",
    "--commit-filter",
    "--tag-name-filter",
  ],
  textAfter: ["foreach"],
  commandAfter: ["run"],
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
add("go", {
  operands: "data",
  commandAfter: ["run", "generate"],
  codeOptions: ["-exec", "--exec", "-toolexec", "--toolexec", "-vettool"],
})

/** `/usr/bin/python3.11` → `python`; undefined: the program is not known to run text. */
export const interpreterOf = (program: string): { readonly name: string; readonly rule: Interpreter } | undefined => {
  const base = program.slice(program.lastIndexOf("/") + 1)
  for (const name of [
    base,
    base.replace(/[-.]?\d[\d.]*$/, ""),
    base.toLowerCase().replace(/(?:[-.]?\d[\d.]*)?(?:\.exe)?$/, ""),
    base
      .replace(/^(?:static-|[a-z0-9_]+-linux-gnu(?:abi\w*)?-)/, "")
      .replace(/[-.](?:static|dbg|cli|nox|basic|tiny|intel64|[a-z0-9_]+-linux-gnu\w*)$/, "")
      .replace(/[-.]?\d[\d.]*$/, ""),
  ]) {
    const rule = Object.hasOwn(table, name) ? table[name] : undefined
    if (rule !== undefined) return { name: base, rule }
  }
  return undefined
}
