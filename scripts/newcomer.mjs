/**
 * The newcomer's path of the README, typed in a fresh clone and timed: set-up, a first sealed command, a first tool of one's own.
 * `node scripts/newcomer.mjs [NPM-VERSION]`; npm's cache and the home are empty, packages come from the registry. Plain JavaScript, for Node 18 and later.
 */
import { execFileSync, spawnSync } from "node:child_process"
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { fileURLToPath } from "node:url"

const root = dirname(dirname(fileURLToPath(import.meta.url)))
const [, , npm] = process.argv
const room = mkdtempSync(join(tmpdir(), "caisson-newcomer-"))
const clone = join(room, "caisson")
const home = join(room, "home")
mkdirSync(home)
const env = { ...process.env, HOME: home, npm_config_cache: join(room, "cache"), npm_config_update_notifier: "false" }
for (const name of Object.keys(env))
  if (/^(?:CAISSON_|npm_(?!config_(?:cache|update|registry)))/.test(name)) delete env[name]
// A clone's own programs come last, if at all.
env.PATH = (env.PATH ?? "")
  .split(":")
  .filter((folder) => !folder.includes("node_modules"))
  .join(":")

const shell = (commands, cwd) => {
  const { status } = spawnSync("bash", ["-c", `set -e\n${commands}`], {
    cwd,
    env,
    stdio: ["ignore", "ignore", "inherit"],
  })
  if (status !== 0) throw new Error(`ended with ${status}: ${commands}`)
}
const below = (heading) => {
  const part =
    readFileSync(join(clone, "README.md"), "utf8")
      .split(/^## /m)
      .find((each) => each.startsWith(heading)) ?? ""
  return /^```sh\n(.*?)^```/ms.exec(part)?.[1] ?? ""
}

try {
  if (npm !== undefined) {
    shell(`npm install --silent --no-audit --no-fund --prefix ${join(room, "npm")} npm@${npm}`, room)
    env.PATH = `${join(room, "npm", "node_modules", ".bin")}:${env.PATH}`
    rmSync(env.npm_config_cache, { recursive: true, force: true })
  }
  const versions = execFileSync("bash", ["-c", "echo Node $(node --version), npm $(npm --version)"], {
    env,
    encoding: "utf8",
  })
  const began = Date.now()
  const told = []
  const step = (what, run) => {
    run()
    told.push(`${((Date.now() - began) / 1000).toFixed(0).padStart(5)} s  ${what}`)
  }
  step("cloned", () => shell(`git clone -q file://${root} ${clone}`, room))
  step("set up, and the tour seen (npm start -- --once)", () => shell("npm start -- --once", clone))
  step("a first sealed command", () => shell(below("Any command").split("\n")[0], clone))
  step("a first tool of one's own, begun, validated and called", () => shell(below("The catalogue"), clone))
  console.log(`${versions.trim()}\n${told.join("\n")}`)
} finally {
  rmSync(room, { recursive: true, force: true })
}
