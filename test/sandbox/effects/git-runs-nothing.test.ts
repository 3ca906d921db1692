/** Sets of files that make git run a command, through reader, judge and commit; then the user's own `git status`. */
import { execFileSync, spawnSync } from "node:child_process"
import { existsSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest"
import { beginSnapshot, commitLayer, judgeWrites, readWriteSet } from "../../../src/sandbox/effects/index.ts"

let base: string
let workspace: string
let canary: string
const environment = (): NodeJS.ProcessEnv => ({
  PATH: process.env["PATH"],
  HOME: join(base, "home"),
  GIT_CONFIG_NOSYSTEM: "1",
})
const git = (...args: string[]): string =>
  execFileSync("git", ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "protocol.file.allow=always", ...args], {
    cwd: workspace,
    env: environment(),
    stdio: "pipe",
    encoding: "utf8",
  })

/** Made once; each test works on a copy. */
let model: string
beforeAll(() => {
  base = model = mkdtempSync(join(tmpdir(), "caisson-git-"))
  workspace = join(model, "ws")
  mkdirSync(join(model, "home"))
  mkdirSync(join(workspace, "docs"), { recursive: true })
  writeFileSync(join(workspace, "docs/a"), "a")
  git("init", "-q", "-b", "main")
  git("config", "extensions.worktreeConfig", "true")
  git("add", ".")
  git("commit", "-qm", "one")
  execFileSync("git", ["clone", "-q", workspace, join(model, "other")], { env: environment() })
  git("submodule", "--quiet", "add", join(model, "other"), "sub")
  git("worktree", "add", "-q", "--detach", "tree")
  writeFileSync(join(workspace, "tree/.git"), "gitdir: ../.git/worktrees/tree\n")
})
afterAll(() => rmSync(model, { recursive: true, force: true }))

beforeEach(() => {
  base = mkdtempSync(join(tmpdir(), "caisson-git-"))
  workspace = join(base, "ws")
  canary = join(base, "canary")
  execFileSync("cp", ["-a", join(model, "home"), join(model, "ws"), base])
})
afterEach(() => rmSync(base, { recursive: true, force: true }))

type Files = Readonly<Record<string, string | { readonly link: string }>>

/** What a tool whose contract says `/**` leaves behind. */
const leave = async (files: Files): Promise<"refused" | "committed"> => {
  const since = beginSnapshot(workspace)
  const upper = join(base, "upper")
  mkdirSync(upper)
  for (const [path, content] of Object.entries(files)) {
    mkdirSync(dirname(join(upper, path)), { recursive: true })
    if (typeof content === "string") writeFileSync(join(upper, path), content)
    else symlinkSync(content.link, join(upper, path))
  }
  const writeSet = await readWriteSet({ lower: workspace, upper, xattrPrefix: "user" })
  if (judgeWrites({ mutates: ["/**"], fsDeny: [] }, writeSet).verdict !== "clean") return "refused"
  const txRoot = join(base, "tx")
  const result = await commitLayer({ workspace, upper, writeSet, txRoot, since, xattrPrefix: "user" })
  expect(result).toEqual({ ok: true })
  return "committed"
}
const look = (): void => {
  for (const folder of ["", "docs", "docs/deep", "sub", "tree", "evil"]) {
    const cwd = join(workspace, folder)
    if (existsSync(cwd)) spawnSync("git", ["status"], { cwd, env: environment() })
  }
}

const HEAD = "ref: refs/heads/main\n"
const config = (bare: boolean): string =>
  `[core]\n\trepositoryformatversion = 0\n\tbare = ${bare}\n${bare ? "\tworktree = .\n" : ""}\tfsmonitor = touch ${canary} #\n`
const repository = (at: string, bare = false): Files => ({
  [`${at}/HEAD`]: HEAD,
  [`${at}/config`]: config(bare).replace("\tbare = true\n", ""),
  [`${at}/objects/info/x`]: "",
  [`${at}/refs/heads/x`]: "",
})

describe("after a tool that may write everything, the user's git status runs no command", () => {
  const planted: readonly [string, () => Files][] = [
    ["its settings", () => ({ ".git/config": config(false) })],
    ["the settings of this worktree", () => ({ ".git/config.worktree": config(false) })],
    ["a submodule's common folder", () => ({ ".git/modules/sub/commondir": "../../../evil\n", ...repository("evil") })],
    [
      "a worktree's common folder",
      () => ({ ".git/worktrees/tree/commondir": "../../../evil\n", ...repository("evil") }),
    ],
    ["the repository's own common folder", () => ({ ".git/commondir": "../evil\n", ...repository("evil") })],
    ["a submodule's settings", () => ({ ".git/modules/sub/config": config(false) })],
    ["a folder that looks like a bare repository", () => repository("docs", true)],
    ["a bare repository deeper down", () => repository("docs/deep", true)],
    [
      "half a repository that borrows the rest",
      () => ({ "docs/HEAD": HEAD, "docs/commondir": "../evil\n", ...repository("evil", true) }),
    ],
    [
      "a bare repository made of links",
      () => ({
        "docs/HEAD": HEAD,
        "docs/config": config(true).replace("\tbare = true\n", ""),
        "docs/objects": { link: "../x" },
        "docs/refs": { link: "../x" },
        "x/y": "",
      }),
    ],
    ["a file in place of a repository", () => ({ "docs/.git": "gitdir: ../evil\n", ...repository("evil") })],
    ["a link in place of a repository", () => ({ "docs/.git": { link: "../evil" }, ...repository("evil") })],
    ["a new repository with settings", () => repository("docs/.git")],
    ["a submodule pointed elsewhere", () => ({ "sub/.git": "gitdir: ../evil\n", ...repository("evil") })],
    ["the user's own settings, where the workspace is the home", () => ({ ".gitconfig": config(false) })],
    ["the user's own settings in their other place", () => ({ ".config/git/config": config(false) })],
    ["the way to that place", () => ({ ".config": { link: "evil" }, "evil/git/config": config(false) })],
  ]
  it.each(planted)("planted: %s", async (_name, files) => {
    expect(await leave(files())).toBe("refused")
    look()
    expect(existsSync(canary)).toBe(false)
  })

  it("and each of these would run one, were it committed", async () => {
    const missed: string[] = []
    for (const [name, files] of planted.filter(
      ([name]) => !name.startsWith("the user's") && !name.startsWith("the way"),
    )) {
      const copy = join(base, "copy")
      execFileSync("cp", ["-a", workspace, copy])
      for (const [path, content] of Object.entries(files())) {
        const at = join(copy, path)
        mkdirSync(dirname(at), { recursive: true })
        rmSync(at, { force: true, recursive: true })
        if (typeof content === "string") writeFileSync(at, content)
        else symlinkSync(content.link, at)
      }
      const real = workspace
      workspace = copy
      look()
      workspace = real
      if (!existsSync(canary)) missed.push(name)
      rmSync(canary, { force: true })
      rmSync(copy, { recursive: true })
    }
    expect(missed).toEqual([])
  })

  it("git's data lands all the same", async () => {
    const head = git("rev-parse", "HEAD").trim()
    expect(
      await leave({
        ".git/refs/heads/topic": `${head}\n`,
        ".git/logs/refs/heads/topic": "",
        ".git/COMMIT_EDITMSG": "x\n",
        ".git/packed-refs": "# pack-refs with: peeled fully-peeled sorted \n",
      }),
    ).toBe("committed")
    expect(git("rev-parse", "topic").trim()).toBe(head)
  })

  it("a log that is a link to a file that shells run is refused", async () => {
    expect(await leave({ ".git/logs/refs/heads/topic": { link: "../../../../docs/a" } })).toBe("refused")
    rmSync(join(base, "upper"), { recursive: true })
    expect(await leave({ notes: { link: ".git/hooks" } })).toBe("refused")
  })
})
