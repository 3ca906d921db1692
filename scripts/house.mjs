/**
 * Where things are in this clone: the Node to run with, whether `dist` is current, which entry file to start, and how to
 * run a program that does not outlive the script.
 *
 * Guarantees: plain JavaScript that runs on Node 18 and later, without any npm package; changes nothing.
 * Assumes: it lies in `scripts/` of the package.
 */
import { spawn } from "node:child_process"
import { existsSync, readdirSync, statSync } from "node:fs"
import { constants } from "node:os"
import { delimiter, dirname, join } from "node:path"
import { fileURLToPath, pathToFileURL } from "node:url"
import nodes from "../bin/find-node.cjs"

export const root = dirname(dirname(fileURLToPath(import.meta.url)))
export const stampOfBuild = join(root, "dist", ".built")

/** @param {string} line */
export const say = (line) => process.stderr.write(`${line}\n`)

export const isNewEnough = nodes.isNewEnough

/** The pinned Node of this clone where it runs, else the user's own where it is new enough. @returns {string | undefined} */
export const findNode = () => {
  const pinned = nodes.pinnedNode(root)
  if (pinned !== undefined) return pinned
  if (isNewEnough(process.versions.node)) return process.execPath
  const named = process.env["CAISSON_NODE"]
  return nodes.runs(named) ? named : undefined
}

/** An environment in which `node` is this one, and the programs of the packages are there. @param {string} node */
export const environmentWith = (node) => ({
  ...process.env,
  PATH: [dirname(node), join(root, "node_modules", ".bin"), process.env["PATH"]].join(delimiter),
})

const setpriv = "/usr/bin/setpriv"

/**
 * Runs a program to its end, with this process's terminal. It does not outlive this process, however that ends; signals
 * are passed on, except those that a terminal gives to both.
 *
 * @param {string} program @param {readonly string[]} args
 * @param {{ env?: NodeJS.ProcessEnv }} [options]
 * @returns {Promise<number>} its exit code
 */
export const runToEnd = (program, args, { env = process.env } = {}) =>
  new Promise((resolve) => {
    const [file, ...words] = existsSync(setpriv)
      ? [setpriv, "--pdeathsig", "KILL", program, ...args]
      : [program, ...args]
    const child = spawn(file, words, { cwd: root, stdio: "inherit", env })
    const passOn = (/** @type {NodeJS.Signals} */ signal) => {
      if (signal !== "SIGINT" || !process.stdin.isTTY) child.kill(signal)
    }
    const signals = /** @type {const} */ (["SIGINT", "SIGTERM", "SIGHUP"])
    for (const signal of signals) process.on(signal, passOn)
    const end = (/** @type {number} */ code) => {
      for (const signal of signals) process.off(signal, passOn)
      resolve(code)
    }
    child.once("error", (error) => {
      say(`caisson: ${program} cannot be started: ${error.message}`)
      end(1)
    })
    child.once("exit", (code, signal) => end(code ?? 128 + (constants.signals[signal ?? "SIGKILL"] ?? 0)))
  })

/** The latest modification below a folder, in ms; 0 where it is missing. @param {string} folder @returns {number} */
const newest = (folder) => {
  if (!existsSync(folder)) return 0
  let latest = statSync(folder).mtimeMs
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    const path = join(folder, entry.name)
    const at = entry.isDirectory() ? newest(path) : statSync(path).mtimeMs
    if (at > latest) latest = at
  }
  return latest
}

export const isDistCurrent = () =>
  existsSync(stampOfBuild) && statSync(stampOfBuild).mtimeMs >= newest(join(root, "src"))

/** The file to start for a module such as `cli/tour`: built where `dist` is current, else source. @param {string} name */
export const entryOf = (name) => (isDistCurrent() ? join(root, "dist", `${name}.js`) : join(root, "src", `${name}.ts`))

/** @param {string} moduleUrl */
export const isMain = (moduleUrl) => process.argv[1] !== undefined && pathToFileURL(process.argv[1]).href === moduleUrl
