/**
 * The workspaces that the catalogue's examples run on: the files in a tool's `example/` folder, plus what cannot lie in
 * a folder of a git repository (a repository) or is better made than stored (a database).
 */
import { execFileSync } from "node:child_process"
import { cpSync, existsSync, mkdirSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"

const quiet = { stdio: "ignore" as const }

const makeRepository = (workspace: string): void => {
  const git = (...args: string[]): void => {
    const identity = ["-c", "user.name=Test", "-c", "user.email=test@example.com", "-c", "commit.gpgsign=false"]
    execFileSync("git", [...identity, ...args], {
      ...quiet,
      cwd: workspace,
      env: { ...process.env, GIT_CONFIG_NOSYSTEM: "1", GIT_CONFIG_GLOBAL: "/dev/null" },
    })
  }
  git("init", "--initial-branch=main")
  writeFileSync(join(workspace, "tracked.txt"), "one\n")
  git("add", "tracked.txt")
  git("commit", "--message=First")
  writeFileSync(join(workspace, "tracked.txt"), "two\n")
  writeFileSync(join(workspace, "fresh.txt"), "fresh\n")
}

const makeStock = (workspace: string): void => {
  const sql = "CREATE TABLE parts(name TEXT, count INTEGER); INSERT INTO parts VALUES ('nut', 12), ('bolt', 40);"
  execFileSync("sqlite3", [join(workspace, "stock.db"), sql], quiet)
}

const made: Readonly<Record<string, (workspace: string) => void>> = {
  "git.status": makeRepository,
  "git.diff": makeRepository,
  "git.log": makeRepository,
  "git.add": makeRepository,
  "git.commit": makeRepository,
  "sqlite.query": makeStock,
}

export const furnish = (tool: string, manifest: string, workspace: string): void => {
  mkdirSync(workspace, { recursive: true })
  const files = join(dirname(manifest), "example")
  if (existsSync(files)) cpSync(files, workspace, { recursive: true })
  made[tool]?.(workspace)
}
