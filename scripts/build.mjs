/**
 * Builds `dist` from `src`; npm's `prepare` hook.
 *
 * Guarantees: after success `dist/.built` is newer than every source; a failed build leaves no such stamp, so that
 * nothing runs a half-built tree. As the hook it leaves a `dist` that is current as it is.
 * Does not: fail where TypeScript is not installed (`npm ci --omit=dev`): there is nothing to build with then.
 */
import { spawnSync } from "node:child_process"
import { cpSync, existsSync, rmSync, utimesSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { findNode, isDistCurrent, isMain, root, say, stampOfBuild } from "./house.mjs"

/** @returns {"built" | "no-compiler" | "failed" | "not-writable"} */
export const build = () => {
  const compiler = join(root, "node_modules", "typescript", "bin", "tsc")
  const node = findNode()
  if (!existsSync(compiler) || !existsSync(join(root, "src")) || node === undefined) return "no-compiler"
  try {
    rmSync(stampOfBuild, { force: true })
    rmSync(join(root, "dist"), { recursive: true, force: true })
  } catch {
    return "not-writable"
  }
  const startedAt = new Date()
  const run = spawnSync(node, [compiler, "-p", "tsconfig.build.json"], { cwd: root, stdio: ["ignore", 2, 2] })
  if (run.status !== 0) return "failed"
  // What runs inside containers is no TypeScript and goes along as it is.
  const isRunnerText = (path) => path === join(root, "src", "runner") || /\.(pl|py|mjs)$/.test(path)
  cpSync(join(root, "src", "runner"), join(root, "dist", "runner"), { recursive: true, filter: isRunnerText })
  // The manual page is written by the command itself.
  const page = spawnSync(node, [join(root, "bin", "caisson.cjs"), "completion", "man"], {
    cwd: root,
    stdio: ["ignore", "pipe", 2],
  })
  if (page.status !== 0) return "failed"
  writeFileSync(join(root, "dist", "caisson.1"), page.stdout)
  // Sources saved while the compiler ran count as newer than this build.
  writeFileSync(stampOfBuild, "")
  utimesSync(stampOfBuild, startedAt, startedAt)
  return "built"
}

// npm runs the hook for every `npx caisson` in the clone, beside a daemon that loads parts of `dist` as it needs them.
const isUnneeded = process.env["npm_lifecycle_event"] === "prepare" && isDistCurrent()

if (isMain(import.meta.url) && !isUnneeded) {
  const outcome = build()
  if (outcome === "no-compiler") say("caisson: TypeScript is not installed; dist is left as it is")
  if (outcome === "not-writable") say("caisson: dist cannot be written here; run the build as the owner of this folder")
  process.exitCode = outcome === "failed" || outcome === "not-writable" ? 1 : 0
}
