/**
 * One machine carrying out its plan.
 *
 * Guarantees: a step counts as passed if the guest said so with this trial's own token and, where it runs tests, one of
 * them ran; steps that the guest never told of count as failed. What a failed step wrote is shown.
 * Assumes: `tree` is a copy of the work tree that nobody else uses meanwhile; it is used until the disk is made.
 */
import { randomBytes } from "node:crypto"
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { say } from "../house.mjs"
import { makeDisk } from "./image.mjs"
import { boot } from "./machine.mjs"

/** @typedef {import("./plan.mjs").Step} Step */

/** The disk with the sources, the plan and the token. @param {string} tree @param {string} disk @param {Step[]} plan @param {string} token */
const houseDisk = (tree, disk, plan, token) => {
  mkdirSync(join(tree, "vm"), { recursive: true })
  writeFileSync(join(tree, "vm", "token"), `${token}\n`)
  const lines = plan.map(({ who, minutes, name, command }) => `${who}\t${minutes * 60}\t${name}\t${command}\n`)
  writeFileSync(join(tree, "vm", "plan"), lines.join(""))
  makeDisk(tree, disk, { label: "house", size: "3G" })
}

/** What vitest says of its tests at the end, if it ran. @param {string[]} lines */
const testsIn = (lines) => lines.map((line) => /^ +Tests +(.*)$/.exec(line)?.[1]).find((found) => found !== undefined)

/** @param {string} code @param {string | undefined} tests */
const troubleOf = (code, tests) => {
  // A run in which every test was skipped ends well, and shows nothing.
  if (code === "0") return tests?.includes(" passed") === false ? "no test ran" : undefined
  return code === "124" ? "out of time" : code
}

/**
 * @param {import("./machine.mjs").Kind} kind
 * @param {import("./machine.mjs").Image} image
 * @param {{ tree: string, folder: string, plan: Step[], cpus: number, memoryMiB: number, deadlineMs: number, verbose: boolean, told: (words: string) => void }} trial
 * @returns {Promise<{ passed: number, failed: number, trouble: string | undefined }>}
 */
export const tryOn = async (kind, image, { tree, folder, plan, verbose, told, ...size }) => {
  const token = randomBytes(12).toString("hex")
  /** @type {Set<string>} */
  const passed = new Set()
  let isDone = false
  /** @type {string[]} */
  let heard = []
  const hear = (/** @type {string} */ line) => {
    if (!line.startsWith(`${token} `)) {
      heard.push(line)
      if (verbose) say(line)
      return
    }
    const words = line.slice(token.length + 1)
    const [verb, code = "", who = "", name = ""] = words.split(" ")
    if (verb === "begin") heard = []
    if (verb === "done") isDone = true
    if (verb !== "end") return told(words)
    const tests = testsIn(heard)
    const trouble = troubleOf(code, tests)
    if (trouble === undefined) passed.add(`${who} ${name}`)
    else if (!verbose) for (const kept of heard) say(`    ${kept}`)
    told(`${trouble === undefined ? "passed" : `FAILED (${trouble})`}  ${who}: ${name}${tests ? `: ${tests}` : ""}`)
  }
  mkdirSync(folder)
  const house = join(folder, "house.img")
  const bootLog = join(folder, "console.log")
  houseDisk(tree, house, plan, token)
  told(`booting (${plan.length} steps; the kernel's own words go to ${bootLog})`)
  let trouble = await boot(kind, image, { house, folder, console: bootLog, ...size }, hear)
  if (trouble === undefined && !isDone) trouble = "the machine went off before the plan's end"
  if (trouble !== undefined) {
    if (existsSync(bootLog)) for (const line of readFileSync(bootLog, "utf8").split("\n").slice(-30)) say(`    ${line}`)
    told(trouble)
  }
  rmSync(folder, { recursive: true })
  const count = plan.filter(({ who, name }) => passed.has(`${who} ${name}`)).length
  return { passed: count, failed: plan.length - count, trouble }
}
