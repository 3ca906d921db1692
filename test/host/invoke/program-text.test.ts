import { describe, expect, it } from "vitest"
import { bindDriver } from "../../../src/host/registry/bind.ts"
import type { Diagnostic } from "../../../src/manifest/types.ts"
import { cliDriverOf, entryOf, toolOf } from "../resolver/contracts.ts"

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
  if (plain.cli === undefined) throw new Error("no cli")
  const driver = {
    ...plain,
    cli: { ...plain.cli, bin, binArgs },
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

  it("names the input and shows how to pass it as data", () => {
    const [first] = found("sh", ["-c", `echo ${x}`])
    expect(first?.message).toContain("`input.x` would become part of program text that `sh` runs")
    expect(first?.fix).toContain("${input.x}")
  })
})
