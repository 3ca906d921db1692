/**
 * A secret in each way there is, one that a program keeps in its home, and then a look at everything that could hold one: the data folder, logs, receipts, answers,
 * events, temporary files, core dumps, and the command line and environment of every process of the machine, all the while.
 * Only a program inside a sandbox, whose driver has it in the environment, may be found with it.
 */
import { spawn } from "node:child_process"
import { once } from "node:events"
import { chmodSync, copyFileSync, mkdirSync, readdirSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { createInterface } from "node:readline"
import { expect, it } from "vitest"

import { removeFolder } from "../support/remove-folder.ts"
import { itemDriver, itemTool, startItems } from "../support/servers/items.ts"
import { startOidc } from "../support/servers/oidc.ts"
import { startWeb } from "../support/servers/web.ts"
import { foundIn, foundInProcesses, huntFor, inEnvironment, newCanaries, ways } from "./canary-world.ts"
import { openFolder } from "./host-world.ts"

const fixtures = join(import.meta.dirname, "../../fixtures")

const cli = (id: string, tool: string, env: readonly string[], spawns: string, more = ""): string => `---
name: ${id}
id: ${id}
description: A fixture that is given a secret.
version: 1.0.0
kind: cli
bin: bin/tool
install: [{ method: vendored, path: bin/tool }]
version_check: { cmd: tool --version, parse: 'tool (\\d+\\.\\d+\\.\\d+)', range: ^1.0.0 }
auth: { state: { paths: [], env: [${env.join(", ")}] } }
${more}
sandbox:
  network: { egress: [], ingress: [] }
  fs: { read: [], write: [], deny: [] }
  exec: { allow: true, spawn: [${spawns}] }
  env: { pass: [${env.join(", ")}], set: {} }
output: { default_format: text }
implements:
  - { tool: ${tool}, version: ^1.0.0, metadata: { cli: { argv: [--, ${tool === "fixture.hold" ? "hold" : '"${input.how}"'}], output_format: text } } }
---
`
const quoted = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`
const program = (variable: string, made: string, digest = `printf %s "$${variable}" | sha256sum`): string => `#!/bin/sh
[ "$1" = --version ] && echo "tool 1.0.0" && exit
[ "$1" = made ] && echo ${quoted(made)} && exit
case "$2" in
  hold) echo here; exec sleep 600 ;;
  digest) ${digest} ;;
  plain) echo "it is $${variable}" ;;
  fail) echo "no, $${variable}" >&2; exit 3 ;;
esac
`
const holdTool = `---
name: Hold
id: fixture.hold
description: Runs until it is ended.
version: 1.0.0
inputs: { type: object, additionalProperties: false }
outputs: { type: string }
mutates: []
approval: auto
timeout_ms: 240000
---
`
const filedSecrets = `---
name: S
id: s
schema: secrets/v1
version: 1.0.0
description: d
secrets:
  - { slug: filed-key, name: K, description: d, exposures: [{ kind: file, path: "~/.filed/key" }] }
---
`
const notesDriver = `---
name: Notes with a key
id: notes-keyed
description: A fixture, an MCP server with a secret in its environment.
version: 1.0.0
kind: mcp
server: { kind: binary, path: ./server.py, args: [--legacy], env: { NOTES_KEY: "\${secrets.NOTES_KEY}" } }
transport: stdio
auth: { state: { paths: [], env: [NOTES_KEY] } }
implements:
  - { tool: notes.act, version: ^1.0.0, metadata: { mcp: { tool_name: act } } }
---
`

/** Folders of manifests, by what is in them. */
const writeManifests = (folder: string, made: string, kept: string): readonly string[] => {
  const put = (name: string, files: Readonly<Record<string, string>>): string => {
    const at = join(folder, name)
    for (const [file, text] of Object.entries(files)) {
      mkdirSync(join(at, file, ".."), { recursive: true })
      writeFileSync(join(at, file), text)
      if (file.startsWith("bin/")) chmodSync(join(at, file), 0o755)
    }
    return at
  }
  const setup = `setup:
  - { kind: prompt, id: own, prompt: "Your key?", type: secret, persist: { env: PROMPTED_KEY } }
  - { kind: prompt, id: other, prompt: "Another?", type: secret, persist: { secret_slug: prompted-other } }
  - { kind: cmd, id: made, description: Make one, cmd: tool made, persist: { secret_slug: prompted-made } }`
  const notes = put("notes", { "DRIVER.md": notesDriver })
  copyFileSync(join(fixtures, "mcp/notes/server.py"), join(notes, "server.py"))
  chmodSync(join(notes, "server.py"), 0o755)
  return [
    put("holder", {
      "TOOL.md": holdTool,
      "DRIVER.md": cli("holder", "fixture.hold", ["HOLDER_KEY"], "sleep"),
      "bin/tool": program("HOLDER_KEY", made),
    }),
    put("apikeyed", {
      "DRIVER.md": cli("apikeyed", "fixture.tell", ["APIKEYED_KEY"], "sha256sum"),
      "bin/tool": program("APIKEYED_KEY", made),
    }),
    put("prompted", {
      "DRIVER.md": cli("prompted", "fixture.tell", [], "sha256sum", setup),
      "bin/tool": program("PROMPTED_KEY", made),
    }),
    put("filed", {
      "DRIVER.md": cli("filed", "fixture.tell", ["FILED_KEY"], "sha256sum").replace(
        "auth: {",
        "auth: { ref: ./SECRETS.md,",
      ),
      "SECRETS.md": filedSecrets,
      "bin/tool": program("FILED_KEY", "", "sha256sum < ~/.filed/key"),
    }),
    put("keeper", {
      "DRIVER.md": cli("keeper", "fixture.tell", [], "sha256sum, mkdir")
        .replace("paths: []", 'paths: ["~/.kept/**"]')
        .replace("write: []", 'write: ["~/.kept/**"]'),
      "bin/tool": program(
        "NONE",
        "",
        `mkdir -p ~/.kept && printf %s ${quoted(kept)} > ~/.kept/token && sha256sum < ~/.kept/token`,
      ),
    }),
    put("items", { "TOOL.md": itemTool, "DRIVER.md": itemDriver }),
    notes,
    join(fixtures, "mcp/tools"),
    join(fixtures, "secrets"),
    join(fixtures, "sdk-secrets"),
    join(fixtures, "logins-oauth"),
  ]
}

it("secrets of every kind are found nowhere but in the one sandbox that is given them", async () => {
  const started = Date.now()
  const folder = openFolder()
  await using items = await startItems()
  await using oidc = await startOidc({ name: "id.test" })
  await using web = await startWeb()
  const canaries = newCanaries()
  const values = Object.fromEntries(canaries.map(({ way, value }) => [way, value]))
  const hunt = huntFor(canaries)
  const hosts: ReturnType<typeof spawn>[] = []
  try {
    const [data, work, crashed, own, roots, config] = [
      "data",
      "work",
      "crashed",
      "own",
      "roots.pem",
      "caisson.yaml",
    ].map((name) => join(folder, name)) as [string, string, string, string, string, string]
    for (const each of [work, crashed]) mkdirSync(each)
    writeFileSync(roots, web.caPem)
    const manifests = writeManifests(own, values["setup-output"] ?? "", values["home"] ?? "")
    const at = (port: number): string => `"127.0.0.1:${port}"`
    writeFileSync(
      config,
      `manifests: ${JSON.stringify(manifests)}
egress: { services: { api.test: ${at(web.httpsPort)}, other.test: ${at(web.httpsPort)}, items.test: ${at(items.port)}, id.test: ${at(oidc.port)}, declared.test: ${at(web.httpPort)} } }
logins:
  desk: { flow: authorization-code, issuer: "http://id.test", client_id: caisson, scopes: [openid, offline_access] }
`,
      { mode: 0o600 },
    )
    const child = spawn(
      "sh",
      ["-c", 'ulimit -c unlimited && exec "$@"', "sh", process.execPath, join(import.meta.dirname, "canary-host.ts")],
      { cwd: crashed, env: { ...process.env, NODE_EXTRA_CA_CERTS: roots }, stdio: ["pipe", "pipe", "pipe"] },
    )
    hosts.push(child)
    let said = ""
    child.stderr.setEncoding("utf8").on("data", (text: string) => (said += text))
    const inProcesses = new Map<string, { way: string; inside: boolean }>()
    const look = (): void => {
      for (const { way, where, inside, name } of foundInProcesses(hunt))
        inProcesses.set(`${way} in ${where} of ${name}, ${inside ? "inside" : "outside"}`, { way, inside })
    }
    const watching = setInterval(look, 25)
    const answers: { readonly what: string; readonly answer: unknown }[] = []
    child.stdin.write(`${JSON.stringify({ config, data, workspace: work, oidcPort: oidc.port, values })}\n`)
    for await (const line of createInterface({ input: child.stdout })) {
      said += `${line}\n`
      const told = JSON.parse(line) as { what: string; answer: unknown }
      answers.push(told)
      if (told.what === "holds") {
        // It said so before it became the program that holds on.
        await expect.poll(() => (look(), [...inProcesses.keys()])).toContain("env in environ of sleep, inside")
        child.stdin.write("on\n")
      }
      if (told.what === "done") break
    }
    clearInterval(watching)
    // Everything was done, or there was nothing to find.
    const failed = answers.filter(({ what, answer }) => {
      const { ok, error } = (answer ?? {}) as { ok?: boolean; error?: { details?: { exit_code?: number } } }
      // Two that are to fail, and the one that is ended.
      return ok === false && !["event", "fixture.hold"].includes(what) && error?.details?.exit_code !== 3
    })
    expect(failed.map(({ what, answer }) => `${what} ${JSON.stringify(answer)}`)).toEqual([])
    expect(answers.at(-1)).toMatchObject({ what: "done" })
    const tokens = oidc.given.map((value) => ({ way: "oauth", value }))
    expect(tokens.length).toBeGreaterThanOrEqual(2)
    const every = huntFor([...canaries, ...tokens])

    child.kill("SIGABRT")
    await once(child, "close")

    expect(every.in(said)).toEqual([])
    expect(foundIn(every, folder, [own])).toEqual([])
    for (const place of [tmpdir(), "/var/tmp", "/dev/shm", "/run/caisson", "/run/caisson-users"])
      expect(foundIn(every, place, [folder, "/tmp/bash_jobs.0"], started)).toEqual([])
    const outside = [...inProcesses].filter(([, { way, inside }]) => !inside || !inEnvironment.includes(way))
    expect(outside.map(([where]) => where)).toEqual([])
    // Those who looked would have seen it.
    expect(answers.filter(({ what }) => what === "holds")).toHaveLength(1)
    expect(readdirSync(join(data, "homes")).filter((name) => name.endsWith(".sealed"))).not.toEqual([])
    expect(foundIn(every, own, []).length).toBeGreaterThan(0)
  } finally {
    // Also where something was found: it does not outlive its test.
    for (const host of hosts) host.kill("SIGKILL")
    removeFolder(folder)
  }
})

it("each spelling of a secret would be found", () => {
  const canaries = newCanaries()
  const hunt = huntFor(canaries)
  for (const { way, value } of canaries)
    for (const text of [
      value,
      JSON.stringify({ value }),
      encodeURIComponent(value),
      Buffer.from(`x${value}`).toString("base64"),
      Buffer.from(`xy${value}`).toString("base64url"),
      Buffer.from(value).toString("hex"),
      Buffer.from(value, "utf16le"),
    ])
      expect(hunt.in(text)).toEqual([way])
  expect(canaries.map(({ way }) => way)).toEqual(ways)
})
