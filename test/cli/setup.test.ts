/** `scripts/setup.mjs` on a clone of the test's own, with an npm and an apt-get that only write down what they are asked. */
import { spawnSync } from "node:child_process"
import { chmodSync, cpSync, existsSync, mkdirSync, readFileSync, renameSync, symlinkSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { afterEach, beforeEach, describe, expect, test } from "vitest"
import { scratch } from "./run-caisson.ts"

const scripts = fileURLToPath(new URL("../../scripts", import.meta.url))
const programs = [
  "bwrap",
  "unshare",
  "setpriv",
  "jq",
  "git",
  "rg",
  "sqlite3",
  "curl",
  "pandoc",
  "convert",
  "file",
  "patch",
  "tar",
  "diff",
]
const isRoot = process.getuid?.() === 0

let room: ReturnType<typeof scratch>
let clone: string
let bin: string

const program = (name: string, script: string): void => {
  writeFileSync(join(bin, name), `#!/bin/sh\n${script}\n`)
  chmodSync(join(bin, name), 0o755)
}
const asked = (): string[] =>
  existsSync(join(clone, "asked")) ? readFileSync(join(clone, "asked"), "utf8").trimEnd().split("\n") : []
const setup = (env: Record<string, string> = {}): { code: number | null; stdout: string; stderr: string } => {
  const run = spawnSync(process.execPath, [join(clone, "scripts", "setup.mjs")], {
    encoding: "utf8",
    env: { PATH: bin, HOME: join(room.folder, "home"), ...env },
  })
  return { code: run.status, stdout: run.stdout, stderr: run.stderr }
}

beforeEach(() => {
  room = scratch()
  clone = join(room.folder, "clone")
  bin = join(room.folder, "bin")
  cpSync(scripts, join(clone, "scripts"), { recursive: true })
  mkdirSync(bin)
  writeFileSync(join(clone, "package-lock.json"), "{}")
  for (const name of ["sh", "mkdir", "touch", "ln"]) symlinkSync(`/bin/${name}`, join(bin, name))
  for (const name of programs) program(name, "exit 0")
  program(
    "npm",
    `echo "npm $*" >> ${clone}/asked; mkdir -p ${clone}/node_modules; touch ${clone}/node_modules/.package-lock.json`,
  )
})
afterEach(() => room[Symbol.dispose]())

describe("npm packages", () => {
  test("are installed once, and again when the lockfile changes", () => {
    expect(setup().code).toBe(0)
    expect(setup().code).toBe(0)
    expect(asked()).toEqual(["npm ci --no-audit --no-fund --loglevel=error"])
    writeFileSync(join(clone, "package-lock.json"), '{"changed": true}')
    expect(setup().code).toBe(0)
    expect(asked()).toHaveLength(2)
  })

  test("that cannot be installed end with 5 and one line that says what to do", () => {
    program("npm", "exit 7")
    const { code, stdout, stderr } = setup()
    expect(code).toBe(5)
    expect(stdout).toBe("")
    expect(stderr).toContain("run: npm ci")
  })
})

describe("system packages", () => {
  test("that are all there need nothing", () => {
    program("apt-get", `echo "apt-get $*" >> ${clone}/asked`)
    expect(setup().code).toBe(0)
    expect(asked().filter((line) => line.startsWith("apt-get"))).toEqual([])
  })

  test("without which nothing can be sealed end with 5 and name the command to run", () => {
    for (const name of ["bwrap", "jq"]) program(name, "exit 0")
    chmodSync(join(bin, "bwrap"), 0o644)
    chmodSync(join(bin, "jq"), 0o644)
    const { code, stderr } = setup({ CAISSON_NO_APT: "1" })
    expect(code).toBe(5)
    expect(stderr).toContain(`${isRoot ? "" : "sudo "}apt-get install -y bubblewrap jq`)
  })

  test("are looked for where the packages put them, not in a home", () => {
    const shims = join(room.folder, "home", "shims")
    mkdirSync(shims, { recursive: true })
    renameSync(join(bin, "jq"), join(shims, "jq"))
    expect(setup({ PATH: `${shims}:${bin}` }).stderr).toContain("apt-get install -y jq")
  })
  test("of the catalogue alone do not stop anything", () => {
    chmodSync(join(bin, "pandoc"), 0o644)
    const { code, stderr } = setup({ CAISSON_NO_APT: "1" })
    expect(code).toBe(0)
    expect(stderr).toContain("apt-get install -y pandoc")
  })

  test("are asked of apt as root, without questions, and only those that are missing", ({ skip }) => {
    if (!isRoot) skip("only root installs packages")
    chmodSync(join(bin, "bwrap"), 0o644)
    chmodSync(join(bin, "rg"), 0o644)
    program(
      "apt-get",
      `echo "$DEBIAN_FRONTEND $*" >> ${clone}/asked; case "$*" in *bubblewrap*) ln -sf sh ${bin}/bwrap;; *ripgrep*) ln -sf sh ${bin}/rg;; esac`,
    )
    expect(setup().code).toBe(0)
    const options = "noninteractive -o DPkg::Lock::Timeout=300 -o Acquire::Retries=3 -q"
    expect(asked().slice(1)).toEqual([
      `${options} update`,
      `${options} install -y --no-install-recommends bubblewrap`,
      `${options} install -y --no-install-recommends ripgrep`,
    ])
  })

  test("that apt cannot bring end with 5", ({ skip }) => {
    if (!isRoot) skip("only root installs packages")
    chmodSync(join(bin, "bwrap"), 0o644)
    program("apt-get", "exit 100")
    expect(setup().code).toBe(5)
  })
})
