import { describe, expect, it } from "vitest"
import { bindDriver } from "../../../../src/host/registry/bind.ts"
import type { DriverContract, Diagnostic } from "../../../../src/manifest/types.ts"
import { cliDriverOf, entryOf, toolOf } from "../../resolver/contracts.ts"

const tool = toolOf({
  inputs: {
    type: "object",
    required: ["x", "list", "n", "mode", "flags"],
    properties: {
      x: { type: "string" },
      maybe: { type: "string" },
      list: { type: "array", items: { type: "string" } },
      n: { type: "integer" },
      on: { type: "boolean" },
      mode: { enum: ["fast", "slow"] },
      flags: { enum: ["-c", "-u"] },
    },
  },
})

const found = (command: string, argv: readonly string[], stdin?: string): readonly Diagnostic[] => {
  const [bin = "", ...binArgs] = command.split(" ")
  const plain = cliDriverOf("d")
  if (plain.body.kind !== "cli") throw new Error("no cli")
  const driver: DriverContract = {
    ...plain,
    body: { kind: "cli", cli: { ...plain.body.cli, bin, binArgs } },
    implements: [entryOf({ cli: { argv, ...(stdin === undefined ? {} : { stdin }) } })],
  }
  return bindDriver(driver, [tool]).diagnostics.filter((each) =>
    ["template-program-text", "template-option-composition"].includes(each.rule),
  )
}
const errors = (command: string, argv: readonly string[], stdin?: string): readonly string[] =>
  found(command, argv, stdin)
    .filter((each) => each.severity === "error")
    .map((each) => each.path.replace("implements[0].metadata.cli.", ""))

const x = "${input.x}"

describe("an input inside program text", () => {
  // biome-ignore format: a table reads by rows
  it.each<[string, readonly string[], readonly string[]]>([
    ["sh", ["-c", `echo ${x}`], ["argv[1]"]],
    ["osh", ["-c", `echo ${x}`], ["argv[1]"]],
    ["busybox", ["awk", x], ["argv[1]"]],
    ["env", ["-i", "A=1", "/opt/bin/bash", "-c", x], ["argv[4]"]],
    ["npx", [x], ["argv[0]"]],
    ["uvx", ["--from", "a", x], ["argv[2]"]],
    ["npm", ["exec", x], ["argv[1]"]],
    ["uv", ["run", "python", "-c", x], ["argv[3]"]],
    ["bundle", ["exec", "ruby", "-e", x], ["argv[3]"]],
    ["docker", ["run", "image", "sh", "-c", x], ["argv[4]"]],
    ["mlr", ["put", x], ["argv[1]"]],
    ["nix", ["eval", "--expr", x], ["argv[2]"]],
    ["sg", ["staff", "-c", x], ["argv[2]"]],
    ["clickhouse", ["local", "--query", `select ${x}`], ["argv[2]"]],
    ["clickhouse", ["local", "--query", x], []],
    ["npx", ["prettier", "--", x], []],
    ["git", ["log", "--", x], []],
    ["/bin/bash", ["-lc", x], ["argv[1]"]],
    ["bash", ["-c", "-e", "--", `ls ${x}`], ["argv[3]"]],
    ["bash", ["-o", "pipefail", "-c", `ls ${x}`], ["argv[3]"]],
    ["bash -euc", [`ls ${x}`], ["argv[0]"]],
    ["zsh", ["-c", "ls ${input.maybe | default('a')}"], ["argv[1]"]],
    ["sh", ["-c", "ls ${input.list | json}"], ["argv[1]"]],
    ["sh", ["-c", "ls ${context.who}"], ["argv[1]"]],
    ["sh", ["${input.on | flag('-c')}", x], ["argv[1]"]],
    ["sh", ["${input.maybe | optional('-c', input.maybe)}"], ["argv[0]"]],
    ["sh", ["${input.flags}", x], ["argv[1]"]],
    ["python3", ["-c", `print('${x}')`], ["argv[1]"]],
    ["/usr/bin/python3.11", ["-I", "-Bc", x], ["argv[2]"]],
    ["python3", [`-cprint(${x})`], ["argv[0]"]],
    ["perl", ["-ne", `print if /${x}/`], ["argv[1]"]],
    ["perl", [`-M${x}`, "-e", "1"], ["argv[0]"]],
    ["node", ["-e", x], ["argv[1]"]],
    ["node", [`--eval=${x}`], ["argv[0]"]],
    ["node", ["-p", x], ["argv[1]"]],
    ["ruby", ["-e", x], ["argv[1]"]],
    ["php8.2", ["-r", x], ["argv[1]"]],
    ["lua5.4", ["-e", x], ["argv[1]"]],
    ["deno", ["eval", x], ["argv[1]"]],
    ["awk", [`/${x}/ { print }`, "file"], ["argv[0]"]],
    ["gawk", ["-v", "a=1", "-F", ",", x], ["argv[4]"]],
    ["sed", ["-n", `s/${x}/y/p`], ["argv[1]"]],
    ["sed", ["-e", "p", "-e", x], ["argv[3]"]],
    ["sed", [`--expression=${x}`], ["argv[0]"]],
    ["env", ["-i", "A=b", "sh", "-c", x], ["argv[4]"]],
    ["env", ["-S", x], ["argv[1]"]],
    ["env", [`--split-string=${x}`], ["argv[0]"]],
    ["nice", ["-n", "5", "timeout", "-k", "1", "10", "sh", "-c", `ls ${x}`], ["argv[8]"]],
    ["busybox", ["sh", "-c", x], ["argv[2]"]],
    ["busybox", ["awk", x], ["argv[1]"]],
    ["xargs", ["-n", "1", "sh", "-c", x], ["argv[4]"]],
    ["xargs", [x], ["argv[0]"]],
    ["find", [".", "-name", "a", "-exec", "sh", "-c", x, ";"], ["argv[6]"]],
    ["ssh", ["-p", "22", "host", "ls", x], ["argv[4]"]],
    ["ssh", ["host", `--name=${x}`], ["argv[1]"]],
    ["ssh", ["-o", `ProxyCommand=${x}`, "host"], ["argv[1]"]],
    ["git", ["-c", `alias.x=!${x}`, "x"], ["argv[1]"]],
    ["git", ["-c", x, "status"], ["argv[1]"]],
    ["git", ["fetch", `--upload-pack=${x}`, "origin"], ["argv[1]"]],
    ["tar", ["--extract", `--to-command=${x}`], ["argv[1]"]],
    ["tar", [`--checkpoint-action=exec=${x}`, "-cf", "a"], ["argv[0]"]],
    ["tar", ["-I", x, "-cf", "a"], ["argv[1]"]],
    ["make", [`NAME=${x}`], ["argv[0]"]],
    ["rsync", ["-e", x, "a", "b"], ["argv[1]"]],
    ["watch", ["ls", x], ["argv[1]"]],
    ["flock", ["file", "-c", x], ["argv[2]"]],
    ["sqlite3", ["a.db", `select '${x}'`], ["argv[1]"]],
    ["psql", ["-c", `select '${x}'`], ["argv[1]"]],
    ["timeout", ["5", x], ["argv[1]"]],
    ["setpriv", ["--reuid", "1000", "sh", "-c", x], ["argv[4]"]],
    ["some-wrapper", ["--in", "box", "--", "/bin/sh", "-c", x], ["argv[5]"]],
    ["/lib64/ld-linux-x86-64.so.2", ["/usr/bin/python3", "-c", x], ["argv[2]"]],
    ["uv", ["run", "python", "-c", x], ["argv[3]"]],
    ["bash-static", ["-c", x], ["argv[1]"]],
    ["zsh", ["--emulate", "sh", "-c", x], ["argv[3]"]],
    ["perl5.36-x86_64-linux-gnu", ["-e", x], ["argv[1]"]],
    ["perl", ["-ne", "print", x], ["argv[2]"]],
    ["node", ["-pe", x], ["argv[1]"]],
    ["python3", ["-m", x], ["argv[1]"]],
    ["python3", ["-m", "timeit", x], ["argv[2]"]],
    ["python3", ["-mtimeit", x], ["argv[1]"]],
    ["vim", ["-es", `+${x}`, "file"], ["argv[1]"]],
    ["env", [`BASH_ENV=${x}`, "bash", "script.sh"], ["argv[0]"]],
    ["env", ["-i", "A=b", `LD_PRELOAD=${x}`, "ls"], ["argv[2]"]],
    ["env", [`GIT_SSH_COMMAND=${x}`, "git", "fetch"], ["argv[0]"]],
    ["git", ["submodule", "foreach", x], ["argv[2]"]],
    ["git", ["bisect", "run", "sh", "-c", x], ["argv[4]"]],
    ["git", ["grep", `--open-files-in-pager=${x}`, "a"], ["argv[1]"]],
    ["git", ["filter-branch", "--tree-filter", x], ["argv[2]"]],
    ["npx", ["-c", x], ["argv[1]"]],
    ["socat", ["-", `EXEC:${x}`], ["argv[1]"]],
  ])("is an error: %s %j", (command, argv, paths) => {
    expect(errors(command, argv)).toEqual(paths)
  })

  // biome-ignore format: a table reads by rows
  it.each<[string, readonly string[]]>([
    ["sh", ["-c", 'grep -e "$1" notes', "sh", x]],
    ["sh", ["-c", "exec program \"$@\" 2>/dev/null", "sh", "--", x]],
    ["sh", ["-c", "head -n ${input.n} notes"]],
    ["sh", ["-c", "run --${input.mode}"]],
    ["sh", ["script.sh", "-c", x]],
    ["python3", ["script.py", "-c", x]],
    ["python3", ["-m", "tool", "-c", x]],
    ["python3", ["-c", "import sys; print(sys.argv[1])", x]],
    ["awk", ["-v", `name=${x}`, "$1 == name", "file"]],
    ["awk", ["-f", "program.awk", "--", x]],
    ["sed", ["-n", "1,5p", "--", x]],
    ["git", ["-c", `user.name=${x}`, "commit", `--message=${x}`]],
    ["grep", ["-e", x]],
    ["jq", [`[${x}\n]`]],
    ["find", [".", "-name", x]],
    ["find", [".", "-exec", "grep", "-e", x, "{}", "+"]],
    ["env", ["LC_ALL=C", "grep", "-e", x]],
    ["psql", ["-h", x, "-c", x]],
    ["tar", ["-cf", x]],
    ["env", [`LC_ALL=${x}`, "sort"]],
    ["env", ["-i", "grep", "-c", x]],
    ["perl", ["-Mopen", "-e", "print shift", x]],
    ["perl", ["script.pl", "-n", x]],
    ["node", ["--no-warnings", "script.mjs", "-e", x]],
    ["grep", ["-r", "python", "--", x]],
    ["xargs", ["-0", "stat", "--", x]],
  ])("is no error where it stays data: %s %j", (command, argv) => {
    expect(errors(command, argv)).toEqual([])
  })

  it("is an error in a program by stdin where author's and caller's text are mixed, a warning where it is the whole", () => {
    expect(errors("python3", [], `print("${x}")`)).toEqual(["stdin"])
    expect(errors("bash", ["-s", "--"], `cd ${x}`)).toEqual(["stdin"])
    expect(errors("env", ["python3", "-"], `print("${x}")`)).toEqual(["stdin"])
    expect(found("python3", ["-"], x).map((each) => each.severity)).toEqual(["warning"])
    expect(found("python3", ["script.py"], x)).toEqual([])
    expect(found("sh", ["-c", "cat"], `a ${x}`)).toEqual([])
  })

  it.each<[string, readonly string[]]>([
    ["xargs", ["-I{}", "sh", "-c", "echo {}"]],
    ["xargs", ["-I", "%", "sh", "-c", "echo %"]],
    ["xargs", ["sh", "-c"]],
    ["xargs", ["tar", "-xf", "a.tar"]],
    ["busybox", ["xargs", "rm"]],
  ])("is an error where stdin becomes the command line of another program: %s %j", (command, argv) => {
    expect(errors(command, argv, x)).toEqual(["stdin"])
  })

  it.each<[string, readonly string[]]>([
    ["xargs", ["-0", "sh", "-c", 'rm -- "$@"', "sh"]],
    ["xargs", ["-d", "\\n", "stat", "--"]],
    ["sqlite3", ["a.db"]],
  ])("is no error by stdin where it stays data, or is a whole statement: %s %j", (command, argv) => {
    expect(found(command, argv, x)).toEqual([])
  })

  it("is no error as a statement on lines of its own", () => {
    expect(found("sqlite3", ["a.db"], `.print ---\n${x}\n`)).toEqual([])
  })

  it.each<[string, readonly string[]]>([
    ["sed", ["-f", "-", "file"]],
    ["awk", ["-f", "/dev/stdin"]],
    ["make", ["-f", "-"]],
    ["sh", ["/dev/stdin"]],
    ["curl", ["-K", "-"]],
    ["parallel", []],
    ["at", ["now"]],
    ["ed", ["file"]],
    ["sqlite3", ["a.db"]],
    ["psql", ["-h", "host"]],
  ])("is an error in what is read from stdin as a file of program text: %s %j", (command, argv) => {
    expect(errors(command, argv, `begin ${x}`)).toEqual(["stdin"])
  })

  it("names the input and shows how to pass it as data", () => {
    const [first] = found("sh", ["-c", `echo ${x}`])
    expect(first?.message).toContain("`input.x` would become part of program text that `sh` runs")
    expect(first?.fix).toContain("${input.x}")
  })
})
