import { mkdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { afterEach, beforeEach, describe, expect, test } from "vitest"
import { createHost, processCaller } from "../../src/host/index.ts"
import type { Envelope, Host } from "../../src/host/types.ts"
import { commandOf, descendants, removeFolder, stillAlive, temporaryFolder, until } from "../support/sealed.ts"
import { waiting } from "../support/waiting.ts"

const languages = {
  node: { file: "lib.ts", style: "esm", waits: /^\S*node\0\/run\/caisson\/run-node\.mjs\0\{.*\0\d+\0$/s },
  python: {
    file: "lib.py",
    style: "python",
    waits: /^\S*python3?\0-I\0-B\0\/run\/caisson\/run-python\.py\0\{.*\0\d+\0$/s,
  },
} as const
type Language = keyof typeof languages

let folder = ""
let workspace = ""
let host: Host
beforeEach(() => {
  folder = temporaryFolder("begun")
  workspace = join(folder, "workspace")
  mkdirSync(workspace)
})
afterEach(async () => {
  await host.close()
  removeFolder(folder)
})

/** One tool, `x.<name>`, that is the function `name` of a module of that text. */
const open = async (language: Language, text: string, more = ""): Promise<void> => {
  const at = join(folder, "manifests")
  mkdirSync(join(at, "tool"), { recursive: true })
  const { file, style } = languages[language]
  writeFileSync(join(at, file), text)
  writeFileSync(
    join(at, "tool", "TOOL.md"),
    `---
name: X
id: x.tool
description: For a test.
version: 1.0.0
inputs: { type: object, additionalProperties: true }
outputs: {}
mutates: ["workspace:**"]
idempotent: false
approval: auto
---
`,
  )
  writeFileSync(
    join(at, "DRIVER.md"),
    `---
name: X
id: x-driver
description: For a test.
version: 1.0.0
kind: sdk
package: ${file}
package_manager: local
import_style: ${style}
${more}implements: [{ tool: x.tool, version: ^1.0.0, metadata: { sdk: { function_ref: tool } } }]
---
`,
  )
  host = await createHost({ data: join(folder, "data"), manifests: [at] })
}
const call = async (input = {}): Promise<Envelope> =>
  host.call({ tool: "x.tool", input, workspace }, { caller: processCaller("alice"), approved: true })
const value = async (input = {}): Promise<Record<string, unknown>> => {
  const answer = await call(input)
  if (!answer.ok) throw new Error(`${answer.error.code}: ${answer.error.message}`)
  return answer.value as Record<string, unknown>
}
/** Interpreters that were started before there is a call. */
const begun = (language: Language): number[] =>
  descendants(process.pid)
    .map(({ pid }) => pid)
    .filter((pid) => languages[language].waits.test(commandOf(pid)))
const isAtRest = (pid: number): boolean => {
  try {
    return / S /.test(readFileSync(`/proc/${pid}/stat`, "latin1"))
  } catch {
    return false
  }
}
const oneWaits = async (language: Language): Promise<number> => {
  await until(() => begun(language).length > 0, "a module waits for its call")
  return begun(language)[0] as number
}

/** What a program can tell of where it is, and what it leaves there. */
const look: Record<Language, string> = {
  node: `
import { readdirSync, readFileSync, writeFileSync } from "node:fs"
let calls = 0
const began = Date.now()
export const tool = ({ mark }) => {
  calls += 1
  const places = ["/tmp", "/dev/shm", process.env.HOME, "/workspace"]
  const found = places.map((at) => readdirSync(at).sort())
  for (const at of places.slice(0, 3)) writeFileSync(at + "/planted", mark)
  writeFileSync("/workspace/" + mark, mark)
  globalThis.planted = (globalThis.planted ?? "") + mark
  const { CAISSON_OPERATION_KEY: key, ...env } = process.env
  return { began, calls, found, planted: globalThis.planted, argv: process.argv, cwd: process.cwd(), env, key,
    listed: Object.keys(process.env).sort(), limits: readFileSync("/proc/self/limits", "utf8"),
    files: readdirSync("/proc/self/fd").filter((fd) => Number(fd) > 40) }
}`,
  python: `
import os, time, sys
calls = 0
began = time.time() * 1000
def tool(input):
    global calls
    calls += 1
    places = ["/tmp", "/dev/shm", os.environ["HOME"], "/workspace"]
    found = [sorted(os.listdir(at)) for at in places]
    for at in places[:3]: open(at + "/planted", "w").write(input["mark"])
    open("/workspace/" + input["mark"], "w").write("")
    sys.planted = getattr(sys, "planted", "") + input["mark"]
    env = dict(os.environ)
    key = env.pop("CAISSON_OPERATION_KEY")
    return {"began": began, "calls": calls, "found": found, "planted": sys.planted, "argv": sys.argv, "cwd": os.getcwd(), "env": env,
        "key": key, "listed": sorted(os.environ), "limits": open("/proc/self/limits").read(),
        "files": [fd for fd in os.listdir("/proc/self/fd") if int(fd) > 40]}
`,
}

describe.each(["node", "python"] as const)("a module of %s that waits for its call", (language) => {
  test("is imported before the call, is used for one, and finds what it would have found", async () => {
    await open(language, look[language])
    const { began, key, ...first } = await value({ mark: "first" })
    expect(first).toMatchObject({ calls: 1, planted: "first", files: [], found: [[], [], [], []] })
    const keys = new Set([key])
    let early = 0
    for (let calls = 0; early < 2; calls += 1) {
      await oneWaits(language)
      const [mark, asked] = [`mark-${calls}`, Date.now()]
      const { began: then, key: own, found, ...next } = await value({ mark })
      if (Number(then) < asked) early += 1
      expect({ ...next, found: (found as string[][]).slice(0, 3) }).toEqual({
        ...first,
        planted: mark,
        found: [[], [], []],
      })
      expect(keys).not.toContain(own)
      keys.add(own)
    }
    expect(began).not.toBe(0)
  })

  test("many at once: none finds what another one left, whether it waited or not", async () => {
    await open(language, look[language])
    await value({ mark: "0" })
    await oneWaits(language)
    const found = await Promise.all(["1", "2", "3", "4", "5", "6"].map((mark) => value({ mark })))
    for (const [index, each] of found.entries()) {
      expect(each).toMatchObject({ calls: 1, planted: String(index + 1), files: [] })
      expect((each["found"] as string[][]).slice(0, 3)).toEqual([[], [], []])
    }
  })

  test("holds no word of a call, and can write to nothing, before it has one", async () => {
    await open(language, look[language])
    const { key } = await value({ mark: "s3cret-word" })
    const pid = await oneWaits(language)
    for (const file of ["environ", "cmdline", "mountinfo"])
      for (const word of [String(key), "s3cret-word", workspace])
        expect(readFileSync(`/proc/${pid}/${file}`, "latin1"), file).not.toContain(word)
    const mounts = readFileSync(`/proc/${pid}/mountinfo`, "utf8").split("\n")
    for (const place of ["/tmp", "/home/tool", "/dev/shm"]) {
      const last = mounts.filter((line) => line.split(" ")[4] === place).at(-1) ?? ""
      expect(last.split(" ")[5]?.split(","), place).toContain("ro")
    }
    await host.close()
    expect(stillAlive([{ pid, started: "" } as never])).toEqual([])
  })
})

const helped: Record<Language, readonly [name: string, module: string, first: string, second: string]> = {
  node: [
    "helper.ts",
    `import { word } from "./helper.ts"\nexport const tool = () => ({ word })`,
    `export const word = "old"`,
    `export const word = "new"`,
  ],
  python: [
    "helper.py",
    `from helper import word\ndef tool(input): return {"word": word}`,
    `word = "old"`,
    `word = "new"`,
  ],
}
test.each(["node", "python"] as const)(
  "a file that a module of %s imports is changed in its place: the next call has it",
  async (language) => {
    const [name, module, first, second] = helped[language]
    mkdirSync(join(folder, "manifests"))
    const helper = join(folder, "manifests", name)
    writeFileSync(helper, first)
    await open(language, module)
    for (const [text, word] of [
      [second, "new"],
      [first, "old"],
      [second, "new"],
    ] as const) {
      await value()
      await oneWaits(language)
      await until(() => begun(language).some(isAtRest), "one has imported it")
      writeFileSync(helper, text)
      expect(await value()).toEqual({ word })
    }
  },
)

/** Modules that keep their interpreter from finding that anything is another one by now. */
const blinding: Record<Language, readonly [first: string, second: string]> = {
  node: [
    `Array.prototype.some = () => false\nexport const tool = () => ({ word: "old" })`,
    `export const tool = () => ({ word: "new" })`,
  ],
  python: [
    `import builtins\nbuiltins.any = lambda each: False\ndef tool(input): return {"word": "old"}`,
    `def tool(input): return {"word": "new"}`,
  ],
}
test.each(["node", "python"] as const)(
  "a module of %s that was replaced is run by no call, whatever it does to the interpreter that waits with it",
  async (language) => {
    const [first, second] = blinding[language]
    await open(language, first)
    expect(await value()).toEqual({ word: "old" })
    await oneWaits(language)
    await until(() => begun(language).some(isAtRest), "one has imported it")
    writeFileSync(join(folder, "manifests", languages[language].file), second)
    expect(await value()).toEqual({ word: "new" })
  },
)

/** Modules whose import looks at what only a call has: each begins anew in its call. */
const looks: readonly (readonly [what: string, language: Language, text: string])[] = [
  [
    "a variable of the call",
    "node",
    `const key = process.env.CAISSON_OPERATION_KEY\nexport const tool = () => ({ seen: key === process.env.CAISSON_OPERATION_KEY })`,
  ],
  [
    "all variables",
    "node",
    `const env = { ...process.env }\nexport const tool = () => ({ seen: env.CAISSON_OPERATION_KEY === process.env.CAISSON_OPERATION_KEY })`,
  ],
  [
    "a file of the workspace",
    "node",
    `import { existsSync } from "node:fs"\nconst there = existsSync("settings.json")\nexport const tool = () => ({ seen: there })`,
  ],
  [
    "a file of the workspace, with a promise",
    "node",
    `import { readFile } from "node:fs/promises"\nconst text = await readFile("/workspace/settings.json", "utf8").catch(() => "")\nexport const tool = () => ({ seen: text === "{}" })`,
  ],
  [
    "a place that it can write to",
    "node",
    `import { writeFileSync } from "node:fs"\nwriteFileSync("/tmp/cache", "x")\nexport const tool = () => ({ seen: true })`,
  ],
  [
    "a place in memory that it makes once",
    "node",
    `import { mkdirSync } from "node:fs"\nmkdirSync("/dev/shm/cache")\nexport const tool = () => ({ seen: true })`,
  ],
  [
    "a variable that it sets",
    "node",
    `process.env.OWN ??= process.env.CAISSON_OPERATION_KEY ?? "none"\nexport const tool = () => ({ seen: process.env.OWN === process.env.CAISSON_OPERATION_KEY })`,
  ],
  [
    "what fails later without a call",
    "node",
    `if (process.env.CAISSON_OPERATION_KEY === undefined) setTimeout(() => { throw new Error("late") }, 1)\nexport const tool = () => ({ seen: true })`,
  ],
  [
    "a variable of the call",
    "python",
    `import os\nkey = os.environ.get("CAISSON_OPERATION_KEY")\ndef tool(input): return {"seen": key == os.environ["CAISSON_OPERATION_KEY"]}`,
  ],
  [
    "all variables",
    "python",
    `import os\nenv = dict(os.environ)\ndef tool(input): return {"seen": env["CAISSON_OPERATION_KEY"] == os.environ["CAISSON_OPERATION_KEY"]}`,
  ],
  [
    "a file of the workspace",
    "python",
    `import os\nthere = os.path.exists("settings.json")\ndef tool(input): return {"seen": there}`,
  ],
  [
    "a file of the workspace that it opens",
    "python",
    `try: text = open("/workspace/settings.json").read()\nexcept OSError: text = ""\ndef tool(input): return {"seen": text == "{}"}`,
  ],
  [
    "a place that it can write to",
    "python",
    `open("/tmp/cache", "w").write("x")\ndef tool(input): return {"seen": True}`,
  ],
]
test.each(looks)(
  "an import that looks at %s (%s) is seen in its call as if it began there",
  async (_, language, text) => {
    await open(language, text)
    writeFileSync(join(workspace, "settings.json"), "{}")
    for (let calls = 0; calls < 4; calls += 1) {
      expect(await value()).toEqual({ seen: true })
      // Where it is told beforehand none is begun any more after the first.
      await until(() => begun(language).length > 0 || waiting().length > 0, "something waits for the next call")
    }
  },
)

test("who keeps the door says no more there than a few words: nobody goes on reading", async () => {
  await open(
    "python",
    `
import os, select
door = os.dup(11) if os.path.exists("/proc/self/fd/11") else -1
def tool(input):
    if door < 0: return {"said": 0, "kept": False}
    os.set_blocking(door, False)
    said, asked = 0, select.poll()
    asked.register(door, select.POLLOUT)
    while said < 1 << 26 and asked.poll(5000): said += os.write(door, b"x" * 65536)
    return {"said": said, "kept": True}`,
  )
  expect(await value()).toEqual({ said: 0, kept: false })
  await oneWaits("python")
  await until(() => begun("python").some(isAtRest), "one has imported it")
  const { said, kept } = await value()
  expect(kept).toBe(true)
  expect(said).toBeLessThan(1 << 22)
})

test("a connection that an import tries is no one's before there is a call", async () => {
  await open(
    "node",
    `
import { connect } from "node:net"
let said = "none"
const socket = connect(3128, "127.0.0.1").on("error", (error) => (said = error.code)).on("connect", () => (said = "connected"))
socket.unref()
export const tool = async () => { await new Promise((resolve) => setTimeout(resolve, 50)); return { said } }`,
  )
  for (let calls = 0; calls < 3; calls += 1) expect(await value()).toEqual({ said: "ECONNREFUSED" })
})

test("connections that an import makes without a word of it are ended, and nothing that it does to them ends the host", async () => {
  await open(
    "python",
    `
import gc, socket, struct
early, held = False, []
for each in gc.get_objects():
    if type(each).__name__ == "Looked":
        early, type(each).at = True, lambda self, what: None
for port in (3128, 80, 53):
    for how in ("ends", "resets", "stays"):
        try: one = socket.create_connection(("127.0.0.1", port))
        except OSError: continue
        try: one.send(b"GET / HTTP/1.1")
        except OSError: pass
        if how == "resets": one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        held.append(one) if how == "stays" else one.close()
def ends(one):
    one.settimeout(20)
    try: return one.recv(1) == b""
    except ConnectionError: return True
    except OSError: return False
def tool(input): return {"early": early, "ended": [ends(one) for one in held] if early else []}`,
    'network: { egress: ["declared.test:80"] }\n',
  )
  const thrown: unknown[] = []
  const threw = (error: unknown): unknown => thrown.push(error)
  process.on("uncaughtException", threw)
  try {
    let said: Record<string, unknown> = {}
    for (let calls = 0; said["early"] !== true && calls < 10; calls += 1) {
      said = await value()
      if (said["early"] !== true) await oneWaits("python")
      await until(() => said["early"] === true || begun("python").some(isAtRest), "one has imported it")
    }
    expect(said).toEqual({ early: true, ended: [true, true, true] })
    expect(thrown).toEqual([])
  } finally {
    process.off("uncaughtException", threw)
  }
})
