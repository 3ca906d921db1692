/**
 * What does this npm package do when it is installed? `node review.ts PACKAGE-FOLDER [HOST…]`.
 *
 * What it shows: a command run sealed without any manifest; `--plan`, so that nothing of it stays; the envelope as a list of
 * findings, each with what was done about it. Hosts that are named may be reached, all others are stopped and told.
 */
import { execFile } from "node:child_process"
import { cpSync, mkdirSync, mkdtempDisposableSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join, resolve } from "node:path"
import type { Envelope } from "caisson/client"

const launcher = join(import.meta.dirname, "../../bin/caisson.cjs")

/** Where the install may leave its files; anything else is a finding. */
const expected = ["node_modules/**", "package.json", "package-lock.json"]

const sealed = (workspace: string, hosts: readonly string[]): Promise<Envelope> =>
  new Promise((settled, failed) => {
    const flags = [
      ...expected.flatMap((glob) => ["--write", glob]),
      ...hosts.flatMap((host) => ["--allow", host]),
      ...["node", "sh"].flatMap((program) => ["--exec", program]),
    ]
    const install = ["npm", "install", "--no-audit", "--no-fund", "--install-links", "./package"]
    const words = [launcher, "run", "--json", "--plan", "--workspace", workspace, ...flags, "--", ...install]
    execFile(process.execPath, words, { maxBuffer: 64 * 1024 * 1024 }, (_, stdout, stderr) => {
      try {
        settled(JSON.parse(stdout) as Envelope)
      } catch {
        failed(new Error(`caisson did not answer: ${stderr}`))
      }
    })
  })

const findings = (envelope: Envelope): readonly string[] => [
  ...envelope.effects.filter((each) => !each.declared).map((each) => `writes    ${each.path} (${each.kind})`),
  ...envelope.denied.map(
    (each) =>
      `${{ egress: "dials    ", exec: "starts   ", fs: "reads    ", limit: "exceeds  " }[each.layer]} ${each.target}`,
  ),
]

using folder = mkdtempDisposableSync(join(tmpdir(), "review-"))
const workspace = join(folder.path, "workspace")
mkdirSync(workspace)
writeFileSync(join(workspace, "package.json"), '{ "name": "review", "version": "1.0.0" }\n')
cpSync(resolve(process.argv[2] ?? "."), join(workspace, "package"), { recursive: true })
const envelope = await sealed(workspace, process.argv.slice(3))
const found = findings(envelope)
console.log(found.length === 0 ? "nothing beside its own files" : [...new Set(found)].sort().join("\n"))
console.log(`receipt ${envelope.receipt}`)
process.exitCode = found.length === 0 ? 0 : 1
