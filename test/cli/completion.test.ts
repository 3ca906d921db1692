/** The completion scripts in real shells, and the manual page through groff: what is offered is what the program knows. */
import { existsSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { execa } from "execa"
import { afterEach, beforeEach, describe, expect, test } from "vitest"
import { testNeeding } from "../support/needing.ts"
import { caisson, scratch } from "./run-caisson.ts"

let room: ReturnType<typeof scratch>
let scripts: Readonly<Record<"bash" | "zsh" | "fish", string>>
beforeEach(async () => {
  room = scratch()
  const written = await Promise.all(
    (["bash", "zsh", "fish"] as const).map(async (shell) => {
      const { code, stdout } = await caisson(["completion", shell])
      expect(code).toBe(0)
      const path = join(room.folder, shell)
      writeFileSync(path, stdout)
      return [shell, path] as const
    }),
  )
  scripts = Object.fromEntries(written) as typeof scripts
})
afterEach(() => room[Symbol.dispose]())

/** What bash offers behind these words. */
const offered = async (...words: readonly string[]): Promise<readonly string[]> => {
  const script = `source "$1"; shift; COMP_WORDS=(caisson "$@"); COMP_CWORD=$#; compopt() { :; }; _caisson
    for each in "\${COMPREPLY[@]}"; do printf '%s\\n' "$each"; done`
  const { stdout } = await execa("bash", ["-c", script, "bash", scripts.bash, ...words], { cwd: room.folder })
  return stdout.split("\n").filter((line) => line !== "")
}

describe("in bash", () => {
  test("commands, those below them, and flags are completed", async () => {
    expect(await offered("appro")).toEqual(["approvals"])
    expect(await offered("approvals", "")).toEqual(expect.arrayContaining(["show", "approve", "deny", "--json"]))
    expect(await offered("call", "json.query", "--ba")).toEqual(["--backend"])
  })

  test("a flag's own words are completed, and folders where it takes one", async () => {
    expect(await offered("call", "json.query", "--backend", "")).toEqual(["namespace", "docker"])
    await execa("mkdir", [join(room.folder, "a folder")])
    expect(await offered("call", "json.query", "--workspace", "a")).toEqual(["a folder"])
  })

  test("every command that help names is offered, and nothing else", async () => {
    const { stdout } = await caisson(["--help"])
    const told = [...(stdout.split("Commands:")[1] ?? "").matchAll(/^ {2}([a-z][a-z-]*)/gm)].map((match) => match[1])
    const commands = (await offered("")).filter((word) => !word.startsWith("-"))
    expect([...commands].sort()).toEqual(told.filter((word) => word !== "help").sort())
  })
})

const lacks = (program: string, fix: string): string | undefined =>
  existsSync(`/usr/bin/${program}`) ? undefined : `there is no ${program}: \`apt-get install ${fix}\``

testNeeding("zsh reads its script", lacks("zsh", "zsh"), async () => {
  const script = `source "$1" && whence -w _caisson`
  const { stdout } = await execa("zsh", ["-fc", script, "zsh", scripts.zsh], { env: { ZDOTDIR: room.folder } })
  expect(stdout).toBe("_caisson: function")
})

testNeeding("fish completes by its script", lacks("fish", "fish"), async () => {
  const { stdout } = await execa("fish", ["-c", `source ${scripts.fish}; complete -C 'caisson approvals a'`], {
    env: { HOME: room.folder },
  })
  expect(stdout.split("\t")[0]).toBe("approve")
})

testNeeding("the manual page is whole, and groff has nothing to say of it", lacks("groff", "groff-base"), async () => {
  const { stdout: page } = await caisson(["completion", "man"])
  const { stdout, stderr } = await execa("groff", ["-man", "-ww", "-Tascii", "-P-c", "-P-b", "-P-u"], { input: page })
  expect(stderr).toBe("")
  for (const words of ["caisson call", "--workspace <dir>", "caisson grants create", "EXIT STATUS"])
    expect(stdout).toContain(words)
})

test("a shell that is not known is refused with those that are", async () => {
  const { code, stderr } = await caisson(["completion", "tcsh"])
  expect(code).toBe(2)
  expect(stderr).toMatch(/bash, zsh, fish/)
})
