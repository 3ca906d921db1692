/**
 * Real programs from a command to a contract by `caisson learn`: the contract then holds (`conform` is green), and with one
 * permission less it does not, for the right reason. Spawned for real.
 */
import { execFileSync } from "node:child_process"
import { existsSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs"
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { join } from "node:path"
import { afterEach, beforeEach, describe, expect, test } from "vitest"
import { parse, stringify } from "yaml"
import { canObserve } from "../../src/sandbox/observe/can-observe.ts"
import { caisson, type Ended, scratch } from "../cli/run-caisson.ts"
import { testNeeding } from "../support/needing.ts"
import { startPackageRegistry } from "../support/servers/package-registry.ts"

let room: ReturnType<typeof scratch>
let workspace: string
let env: Record<string, string>
beforeEach(() => {
  room = scratch()
  workspace = join(room.folder, "workspace")
  mkdirSync(workspace)
  env = { CAISSON_DATA: join(room.folder, "data") }
})
afterEach(() => room[Symbol.dispose]())

const run = (...args: readonly string[]): Promise<Ended> => caisson(args, { env, cwd: workspace })
const lacking = (program: string): string | undefined =>
  ["/usr/bin", "/bin", "/usr/local/bin"].some((folder) => existsSync(join(folder, program)))
    ? canObserve()
      ? undefined
      : "this kernel has no seccomp notifications: what a run starts is not watched"
    : `needs ${program}: apt-get install ${program}`

interface Learned {
  readonly writes: readonly { readonly glob: string; readonly receipts: readonly string[] }[]
  readonly programs: readonly { readonly program: string }[]
  readonly hosts: readonly { readonly host: string }[]
  readonly not_proposed: readonly { readonly what: string }[]
  readonly runs: readonly { readonly receipt: string; readonly ok: boolean }[]
}
const out = (): string => join(room.folder, "learned")
const learn = async (...args: readonly string[]): Promise<Learned> => {
  const before = readdirSync(workspace).toSorted()
  const ended = await run("learn", "--out", out(), ...args)
  expect([ended.code, ended.stderr]).toEqual([0, ended.stderr])
  expect(readdirSync(workspace).toSorted()).toEqual(before)
  return JSON.parse(ended.stdout) as Learned
}
const text = (name: string): string => readFileSync(join(out(), name), "utf8")
/** Whether the examples hold, and why not. */
const conform = async (): Promise<{ readonly ok: boolean; readonly said: string }> => {
  const ended = await run("conform", "--manifests", out())
  return { ok: ended.code === 0, said: ended.stdout }
}
/** The value without what is listed by one of these names. */
const pruned = (value: unknown, names: readonly string[]): unknown => {
  if (Array.isArray(value))
    return value.filter((each) => !names.includes(each as string)).map((each) => pruned(each, names))
  if (typeof value !== "object" || value === null) return value
  // What it is called with and reads stays.
  return Object.fromEntries(
    Object.entries(value).map(([key, each]) => [key, key === "argv" || key === "read" ? each : pruned(each, names)]),
  )
}
/** The same manifests with one permission less. */
const without = (word: string): void => {
  for (const name of ["TOOL.md", "DRIVER.md"]) {
    const front = pruned(parse(text(name).split(/^---$/m)[1] ?? ""), [word, `workspace:/${word}`]) as {
      sandbox?: { exec: { spawn?: readonly string[] } }
    }
    if (front.sandbox?.exec.spawn?.length === 0) Object.assign(front.sandbox.exec, { allow: false, spawn: undefined })
    writeFileSync(join(out(), name), `---\n${stringify(front)}---\n`)
  }
}

/** A wheel of one module, in which nothing is compressed: made by Python itself. */
const wheel = `import zipfile
with zipfile.ZipFile("greet-1.0-py3-none-any.whl", "w") as made:
    info = "greet-1.0.dist-info/"
    made.writestr("greet.py", "x = 1\\n")
    made.writestr(info + "METADATA", "Metadata-Version: 2.1\\nName: greet\\nVersion: 1.0\\n")
    made.writestr(info + "WHEEL", "Wheel-Version: 1.0\\nGenerator: test\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
    made.writestr(info + "RECORD", "greet.py,,\\n" + "".join(info + each + ",,\\n" for each in ("METADATA", "WHEEL", "RECORD")))
`

interface Program {
  readonly name: string
  readonly files: Readonly<Record<string, string>>
  /** run in the workspace beforehand, by Python */
  readonly made?: string
  readonly command: readonly string[]
  readonly writes: readonly string[]
  /** `any`: what this machine has it start */
  readonly starts?: readonly string[] | "any"
  /** taken away, and what it then ends as */
  readonly less: string
  readonly why: RegExp
}
/** It may not write there: with nothing else to write, the workspace is read-only; else what it wrote is judged. */
const unwritable = /undeclared_write|stopped: \S+ was to be changed, and lies where nothing can be/
const programs: readonly Program[] = [
  {
    name: "npm",
    files: { "package.json": '{ "name": "x", "version": "1.0.0" }\n' },
    command: ["npm", "pkg", "set", "license=MIT"],
    writes: ["package.json"],
    starts: ["node"],
    less: "package.json",
    why: unwritable,
  },
  {
    name: "pip",
    files: {},
    made: wheel,
    command: "pip install -q --no-index --no-deps --no-compile --target lib ./greet-1.0-py3-none-any.whl".split(" "),
    writes: ["lib", "lib/**"],
    starts: "any",
    less: "lib/**",
    why: unwritable,
  },
  {
    name: "git",
    files: {},
    command: ["git", "init", "-q", "--template=", "repo"],
    writes: ["repo", "repo/**"],
    less: "repo/.git/config",
    why: unwritable,
  },
  {
    name: "pandoc",
    files: { "d.md": "# Hi\n" },
    command: ["pandoc", "d.md", "-o", "d.html"],
    writes: ["d.html"],
    less: "d.html",
    why: unwritable,
  },
  {
    name: "gcc",
    files: { "m.c": "int main(void) { return 0; }\n" },
    command: ["gcc", "-o", "prog", "m.c"],
    writes: ["prog"],
    starts: ["as", "ld"],
    less: "as",
    why: /as is not among the programs/,
  },
  {
    name: "sqlite3",
    files: {},
    command: ["sqlite3", "x.db", "create table t(a); insert into t values (1);"],
    writes: ["x.db"],
    less: "x.db",
    why: unwritable,
  },
  {
    name: "black",
    files: { "p.py": "f( 1 )\n" },
    command: ["black", "-q", "p.py"],
    writes: ["p.py"],
    starts: "any",
    less: "p.py",
    why: unwritable,
  },
  {
    name: "sed",
    files: { "p.py": "f( 1 )\n" },
    command: ["sed", "-i", "s/( /(/", "p.py"],
    writes: ["p.py"],
    less: "p.py",
    why: unwritable,
  },
  {
    name: "ffmpeg",
    files: {},
    command: ["ffmpeg", "-v", "error", "-f", "lavfi", "-i", "color=size=16x16:rate=1:duration=1", "o.png"],
    writes: ["o.png"],
    less: "o.png",
    why: unwritable,
  },
]

describe("a contract that was learned holds, and holds no more than it has to", () => {
  for (const { name, files, made, command, writes, starts = [], less, why } of programs)
    testNeeding(name, lacking(name), async () => {
      for (const [path, content] of Object.entries(files)) writeFileSync(join(workspace, path), content)
      if (made !== undefined) execFileSync("python3", ["-c", made], { cwd: workspace })
      const learned = await learn("--as", "learned.it", "--", ...command)
      expect(learned.writes.map(({ glob }) => glob)).toEqual(expect.arrayContaining([...writes]))
      if (starts !== "any") expect(learned.programs.map(({ program }) => program)).toEqual([...starts])
      const receipts = learned.runs.map(({ receipt }) => receipt)
      expect(receipts).toHaveLength(2)
      for (const each of learned.writes) expect(each.receipts).toEqual(receipts)
      for (const receipt of receipts) expect(text("DRIVER.md")).toContain(receipt.slice(0, 23))
      expect(JSON.parse((await run("validate", "--strict", out())).stdout)).toMatchObject({ errors: 0, warnings: 0 })
      expect(await conform()).toMatchObject({ ok: true })
      without(less)
      const red = await conform()
      expect(red.ok).toBe(false)
      expect(red.said).toMatch(why)
    })
})

testNeeding(
  "curl reaches the host that was allowed for the run, and its contract names it by name and port",
  lacking("curl"),
  async () => {
    const server = createServer((_, response) => void response.end("hello\n"))
    await new Promise<void>((resolve) => void server.listen(0, "127.0.0.1", resolve))
    try {
      const { port } = server.address() as AddressInfo
      mkdirSync(env["CAISSON_DATA"] ?? "", { mode: 0o700 })
      const services = `egress: { services: { svc.test: "127.0.0.1:${port}" } }\n`
      writeFileSync(join(env["CAISSON_DATA"] ?? "", "caisson.yaml"), services, { mode: 0o600 })
      const vain = await run("learn", "--as", "web.get", "--", "curl", "-sS", "http://svc.test/")
      expect(JSON.parse(vain.stdout)).toMatchObject({
        hosts: [],
        not_proposed: expect.arrayContaining([expect.objectContaining({ what: expect.stringContaining("svc.test") })]),
      })
      const learned = await learn("--as", "web.get", "--allow", "svc.test", "--", "curl", "-sS", "http://svc.test/")
      expect(learned.hosts.map(({ host }) => host)).toEqual(["svc.test:80"])
      expect(text("DRIVER.md")).toMatch(/bytes_out: 65536 # ten times the most, seen in sha256:/)
      expect(await conform()).toMatchObject({ ok: true })
      without("svc.test:80")
      const red = await conform()
      expect(red.ok).toBe(false)
      expect(red.said).toContain("svc.test")
    } finally {
      server.closeAllConnections()
      await new Promise((resolve) => void server.close(resolve))
    }
  },
)

testNeeding(
  "npm installs a package with what that depends on, from the one registry that its contract then names",
  lacking("npm"),
  async () => {
    await using registry = await startPackageRegistry()
    await registry.publish(
      { name: "left", version: "1.0.0", files: { "index.js": "1\n" }, manifest: { dependencies: { right: "^2.0.0" } } },
      { name: "right", version: "2.1.0", files: { "lib/index.js": "2\n" } },
    )
    mkdirSync(env["CAISSON_DATA"] ?? "", { mode: 0o700 })
    writeFileSync(join(env["CAISSON_DATA"] ?? "", "caisson.yaml"), registry.config, { mode: 0o600 })
    writeFileSync(join(workspace, "package.json"), '{ "name": "own", "version": "1.0.0" }\n')
    const host = `registry.test:${registry.port}`
    const command = ["npm", "install", "--silent", "--no-audit", "--no-fund", `--registry=http://${host}/`, "left"]
    const learned = await learn("--as", "packages.install", "--runs", "1", "--allow", host, "--", ...command)
    expect(learned.hosts).toEqual([expect.objectContaining({ host })])
    const written = learned.writes.map(({ glob }) => glob)
    expect(written).toEqual(expect.arrayContaining(["package.json", "package-lock.json", "node_modules/**"]))
    expect(await conform()).toMatchObject({ ok: true })
    without(host)
    const red = await conform()
    expect(red.ok).toBe(false)
    expect(red.said).toContain("registry.test")
  },
)

testNeeding("all that a hostile program tried is named, and nothing of it happened", lacking("bash"), async () => {
  symlinkSync("/etc", join(workspace, "etc"))
  symlinkSync("..", join(workspace, "up"))
  writeFileSync(join(workspace, "mine"), "mine")
  const evil = [
    "cat ~/.ssh/id_rsa /etc/shadow etc/shadow",
    "echo x >> ~/.bashrc",
    "echo x > .envrc",
    "echo x > up/escaped",
    "curl -s https://evil.example.com",
    "touch -- 'a*b' $'x\\n    - **' '--- #' '${input.x}'",
    "rm mine",
    "true",
  ].join("\n")
  writeFileSync(join(workspace, "evil.sh"), evil)
  const learned = await learn("--as", "learned.evil", "--runs", "1", "--", "bash", "evil.sh")
  const globs = learned.writes.map(({ glob }) => glob)
  expect(globs).toEqual(expect.arrayContaining([".envrc", "a\\x2ab", "mine"]))
  for (const glob of globs) expect(glob).not.toMatch(/[*\s]|^\/|\.\.|^etc\/|^up\//)
  const left = learned.not_proposed.map(({ what }) => what)
  for (const tried of ["~/.ssh/id_rsa", "/etc/shadow", "~/.bashrc", "evil.example.com"])
    expect(left.some((what) => what.includes(tried))).toBe(true)
  expect(learned.hosts).toEqual([])
  expect(text("DRIVER.md")).toContain(".envrc # look twice")
  expect(readFileSync(join(workspace, "mine"), "utf8")).toBe("mine")
  expect(existsSync(join(room.folder, "escaped"))).toBe(false)
  expect(JSON.parse((await run("validate", "--strict", out())).stdout)).toMatchObject({ errors: 0 })
})

test("a registered tool is told what it lacks and what it never used, in diffs apart, and nothing is changed", async () => {
  await run(
    "init",
    "--out",
    "notes",
    "--tool",
    "notes.copy",
    "--write",
    "copy.txt",
    "--write",
    "never/**",
    "--exec",
    "git",
    "--",
    "cp",
    "${input.file}",
    "other.txt",
  )
  writeFileSync(join(workspace, "a"), "a")
  const before = readFileSync(join(workspace, "notes", "DRIVER.md"), "utf8")
  const ended = await run(
    "learn",
    "--tool",
    "notes.copy",
    "--manifests",
    "notes",
    "-i",
    '{"file":"a"}',
    "--runs",
    "1",
    "--out",
    out(),
  )
  expect(ended).toMatchObject({ code: 0 })
  const { widening, narrowing } = JSON.parse(ended.stdout) as Record<
    "widening" | "narrowing",
    readonly { field: string; value: string }[]
  >
  expect(widening.map(({ field, value }) => `${field} ${value}`)).toEqual(["mutates other.txt", "fs.write other.txt"])
  expect(narrowing.map(({ field, value }) => `${field} ${value}`)).toEqual(
    expect.arrayContaining(["mutates copy.txt", "mutates never/**", "exec.spawn git"]),
  )
  expect(text("widening.diff")).toMatch(/^\+.*workspace:\/other\.txt/m)
  expect(text("narrowing.diff")).toMatch(/^-.*never\/\*\*/m)
  expect(readFileSync(join(workspace, "notes", "DRIVER.md"), "utf8")).toBe(before)
  execFileSync("patch", ["-p0", "--dry-run", "-i", join(out(), "widening.diff")], { cwd: "/" })
  const again = await run(
    "learn",
    "--tool",
    "notes.copy",
    "--manifests",
    "notes",
    "-i",
    '{"file":"a"}',
    "--runs",
    "1",
    "--out",
    out(),
  )
  expect(again.code).toBe(2)
  expect(again.stderr).toContain("nothing was written")
})
