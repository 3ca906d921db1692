/** From a command to a contract that holds, in containers: learned without a record of what was asked for, and red with less. */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { afterAll, afterEach, beforeEach, expect, it } from "vitest"
import { caisson, type Ended, scratch } from "../../cli/run-caisson.ts"
import { acquireEngine } from "../../support/docker-engine.ts"
import { engineSuite } from "./engine-suite.ts"

const engine = await acquireEngine()
const socket = engine.ok ? engine.socket : ""
let room: ReturnType<typeof scratch>
let workspace: string

const run = (...args: readonly string[]): Promise<Ended> =>
  caisson(args, { env: { CAISSON_DATA: join(room.folder, "data") }, cwd: workspace })
const out = (): string => join(room.folder, "learned")
const learn = async (script: string, ...more: readonly string[]): Promise<Record<string, unknown>> => {
  writeFileSync(join(workspace, "go.sh"), script)
  const words = [
    "--backend",
    "docker",
    "--runs",
    "2",
    "--out",
    out(),
    "--as",
    "learned.it",
    "--",
    "bash",
    "go.sh",
    ...more,
  ]
  const ended = await run("learn", ...words)
  expect([ended.code, ended.stderr]).toEqual([0, expect.stringContaining("nobody watched what it read")])
  return JSON.parse(ended.stdout) as Record<string, unknown>
}
const conform = (): Promise<Ended> => run("conform", "--backend", "docker", "--manifests", out())

engineSuite("authoring, with the docker backend", engine, () => {
  beforeEach(() => {
    room = scratch()
    workspace = join(room.folder, "workspace")
    mkdirSync(workspace)
    mkdirSync(join(room.folder, "data"), { mode: 0o700 })
    writeFileSync(join(room.folder, "data", "caisson.yaml"), `docker: { engine: "unix://${socket}" }\n`, {
      mode: 0o600,
    })
  })
  afterEach(() => room[Symbol.dispose]())
  afterAll(async () => {
    if (engine.ok) await engine[Symbol.asyncDispose]()
  })

  it("learns what a script starts and writes, the contract holds, and with one program or path less it does not", async () => {
    writeFileSync(join(workspace, "list.txt"), "b\na\n")
    const learned = await learn('sort "$1" > sorted.txt\n', "list.txt")
    expect(learned).toMatchObject({
      writes: [expect.objectContaining({ glob: "sorted.txt" })],
      programs: [expect.objectContaining({ program: "sort" })],
      hosts: [],
    })
    expect(existsSync(join(workspace, "sorted.txt"))).toBe(false)
    expect(await conform()).toMatchObject({ code: 0 })
    const file = join(out(), "DRIVER.md")
    const driver = readFileSync(file, "utf8")
    writeFileSync(file, driver.replace(/write:\n +- sorted\.txt.*\n/, "write: []\n"))
    expect(readFileSync(file, "utf8")).toContain("write: []")
    const unwritable = await conform()
    expect(unwritable).toMatchObject({
      code: 1,
      stdout: expect.stringMatching(/undeclared_write|sorted\.txt|Read-only/),
    })
    writeFileSync(
      file,
      driver.replace(/exec:\n {4}allow: true\n {4}spawn:.*\n(?: {6}- .*\n)*/, "exec:\n    allow: false\n"),
    )
    expect(readFileSync(file, "utf8")).toContain("allow: false")
    const unstarted = await conform()
    expect(unstarted).toMatchObject({ code: 1, stdout: expect.stringContaining("undeclared_exec") })
  })

  it("lets nothing of what a hostile script tries happen, and proposes none of it unseen", async () => {
    writeFileSync(join(workspace, "mine"), "mine")
    const learned = await learn(
      [
        "cat /etc/shadow ~/.ssh/id_rsa",
        "echo x >> ~/.bashrc",
        "echo x > .envrc",
        "curl -s http://evil.example.com",
        "rm mine",
        "true",
      ].join("\n"),
    )
    expect(learned).toMatchObject({ hosts: [] })
    expect(JSON.stringify(learned["not_proposed"])).toContain("evil.example.com")
    expect(readFileSync(join(out(), "DRIVER.md"), "utf8")).toContain(".envrc # look twice")
    expect(readFileSync(join(workspace, "mine"), "utf8")).toBe("mine")
    expect(existsSync(join(workspace, ".envrc"))).toBe(false)
  })
})
