/** The page about a driver: what others wrote cannot become markup, a request or a steering of the terminal. */
import { existsSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { afterEach, beforeEach, describe, expect, test } from "vitest"
import { asksOf, changesBetween } from "../../../src/authoring/review/asks.ts"
import { countedRows, pageHtml, pageLines, type ReviewPage } from "../../../src/authoring/review/page.ts"
import { loadManifest } from "../../../src/manifest/read/load.ts"
import type { DriverContract } from "../../../src/manifest/types.ts"
import { caisson, type Ended, scratch } from "../run-caisson.ts"

let room: ReturnType<typeof scratch>
beforeEach(() => {
  room = scratch()
})
afterEach(() => room[Symbol.dispose]())

const EVIL = `</code><script>alert(1)</script><img src=x onerror=a()> " ' & \u001b[2J \u202e \ud800`
const page: ReviewPage = {
  title: EVIL,
  about: EVIL,
  sections: [
    { title: EVIL, rows: [{ text: EVIL }, { text: EVIL, risk: EVIL }], none: EVIL },
    { title: "empty", rows: [], none: EVIL },
  ],
}

describe("the page", () => {
  test("as HTML holds no markup of anybody else's, no scripts and no requests", () => {
    const html = pageHtml(page)
    expect(html).toContain(`content="default-src 'none'; style-src 'unsafe-inline'"`)
    expect(html).not.toMatch(/<(?:script|img|link|iframe|a|form|object|svg)\b/i)
    expect(html).not.toMatch(/<[^>]*\b(?:src|href|on[a-z]+)\s*=/)
    expect(
      html
        .match(/<[a-z][a-z0-9]*/g)
        ?.filter((tag) => !/^<(?:html|head|meta|title|style|body|main|h1|h2|p|section|ul|li|code|doctype)$/.test(tag)),
    ).toEqual([])
    expect(html).not.toMatch(/[\u001b\u202e]/)
  })
  test("as text steers no terminal and begins no line of its own", () => {
    const lines = pageLines({ ...page, title: "a\nb" })
    expect(lines.join("")).not.toMatch(/[\n\u001b\u202e]/)
  })
})

/** The rows of a driver that says this beside what every driver says; those that want a second look begin with `!`. */
const asked = (front: string, isTrusted = (): boolean => false): readonly string[] => {
  const text = `---\nname: D\nid: dd\ndescription: D.\nversion: 1.0.0\n${front}---\n`
  const loaded = loadManifest("DRIVER.md", Buffer.from(text), "compat")
  if (!loaded.ok) throw new Error(JSON.stringify(loaded.diagnostics))
  const rows = asksOf(loaded.manifest as DriverContract, [], isTrusted)
  return rows.map(({ text: row, risk }) => (risk === undefined ? row : `! ${row}`))
}
const mcp = (more: string): string =>
  `kind: mcp\nserver: { kind: npm, package: "server@1.0.0", args: [/workspace], env: { NODE_OPTIONS: "--import=x" } }
transport: stdio\n${more}implements: [{ tool: a.b, version: ^1.0.0, metadata: { mcp: { tool_name: go } } }]\n`
const cli = (more: string): string =>
  `kind: cli\nbin: tool\nversion_check: { cmd: tool --version, parse: "(.*)", range: "*" }\n${more}
implements: [{ tool: a.b, version: ^1.0.0, metadata: { cli: { argv: [--go, "\${input.x}"] } } }]\n`
const apt = "install: [{ method: apt, package: tool }]\n"

test("what a page has no room for is counted, and wants a look", () => {
  const many = Array.from({ length: 30 }, (_, at) => `fs /decoy-${at}`)
  expect(countedRows([...many, "fs ~/.ssh/id_rsa", "fs ~/.ssh/id_rsa"], 10)).toEqual([
    { text: "fs ~/.ssh/id_rsa, 2 times" },
    ...many.slice(0, 9).map((text) => ({ text })),
    { text: "and 21 more", risk: expect.stringContaining("receipts") },
  ])
  expect(countedRows(["a", "b"], 2)).toEqual([{ text: "a" }, { text: "b" }])
})

describe("whatever a driver may do is a row", () => {
  test("of a server that it starts: what that is, may touch, start and is given", () => {
    const sandbox =
      "sandbox: { fs: { read: [a], write: ['**/*'], deny: [.env] }, exec: { allow: true, spawn: [sh] } }\n"
    expect(asked(mcp(sandbox))).toEqual(
      expect.arrayContaining([
        'the server server@1.0.0 "/workspace"',
        "! variable NODE_OPTIONS is --import=x",
        "reads a",
        "never reads .env",
        "! writes **/*",
        "! starts sh",
        "for a.b calls the server's go",
      ]),
    )
  })

  test("what it has run beside its calls, and the secrets that it is given", () => {
    const rows = asked(
      cli(`install: [{ method: curl, url: "https://get.example.com/x.sh" }]
auth: { state: { env: [TOKEN], paths: ["~/.tool"] }, login: { cmd: tool login } }
setup: [{ id: one, kind: cmd, cmd: tool init }]
metadata: { limits: { pids: 8 } }
sandbox: { fs: { read: ["~/.tool"], write: ["~/.tool"] }, exec: { allow: false }, env: { set: { LD_PRELOAD: /workspace/x.so } } }
`),
    )
    expect(rows).toEqual(
      expect.arrayContaining([
        'for a.b runs "tool","--go","${input.x}"',
        "! is installed by curl from https://get.example.com/x.sh",
        "! is given the secret TOKEN",
        "keeps ~/.tool from call to call",
        "its login runs tool login",
        "set-up one runs tool init",
        "its version is asked by tool --version",
        "is limited to pids 8",
        "! variable LD_PRELOAD is /workspace/x.so",
      ]),
    )
  })

  test("a function of the embedding program says that no sandbox is around it", () => {
    expect(asked(`kind: builtin\nimplements: [{ tool: a.b, version: ^1.0.0 }]\n`)).toContain(
      "! for a.b calls a.b of the program that embeds the host",
    )
  })

  test("what other programs run or trust is told of writes", () => {
    const sandbox = "sandbox: { fs: { write: [.git/hooks/pre-commit] }, exec: { allow: false } }\n"
    expect(asked(cli(apt + sandbox), () => true)).toContain("! writes .git/hooks/pre-commit")
  })

  test("a folder that is shown again is a change that wants a look", () => {
    const before = asked(cli(`${apt}sandbox: { fs: { read: ["**"], deny: [.env] }, exec: { allow: false } }\n`))
    const now = asked(cli(`${apt}sandbox: { fs: { read: ["**"] }, exec: { allow: false } }\n`))
    expect(changesBetween(before, now)).toEqual([{ text: "- never reads .env", risk: "it was kept from that" }])
  })
})

test("a driver that was changed back is told as it was accepted, and another program of its own is a change", {
  timeout: 600_000,
}, async () => {
  const env = { CAISSON_DATA: join(room.folder, "data") }
  const run = (...args: readonly string[]): Promise<Ended> => caisson(args, { env, cwd: room.folder })
  await run("init", "--tool", "hello.say", "--out", "h")
  interface Report {
    readonly page: readonly { readonly title: string; readonly rows: readonly { readonly text: string }[] }[]
    readonly asks: { readonly waiting?: unknown }
  }
  const changes = async (): Promise<readonly string[]> => {
    const { page: sections, asks } = JSON.parse((await run("review", "hello-say", "--manifests", "h")).stdout) as Report
    const rows = sections.find(({ title }) => title.startsWith("What changed"))?.rows ?? []
    expect(asks.waiting === undefined).toBe(rows.length === 0)
    return rows.map(({ text }) => text)
  }
  expect(await changes()).toEqual([])
  const program = join(room.folder, "h", "bin", "hello-say")
  const before = readFileSync(program, "utf8")
  writeFileSync(program, `${before}# another\n`)
  expect(await changes()).toEqual([
    expect.stringMatching(/^\+ runs files of its own, 3 of its folder, sha256:/),
    expect.stringMatching(/^- runs files of its own, 3 of its folder, sha256:/),
  ])
  writeFileSync(program, before)
  expect(await changes()).toEqual([])
})

test("what a driver asks for is told beside what was accepted of it, until the change is accepted", {
  timeout: 600_000,
}, async () => {
  const env = { CAISSON_DATA: join(room.folder, "data") }
  const run = (...args: readonly string[]): Promise<Ended> => caisson(args, { env, cwd: room.folder })
  await run("init", "--tool", "hello.say", "--out", "h")
  interface Report {
    readonly page: readonly {
      readonly title: string
      readonly rows: readonly { readonly text: string; readonly risk?: string }[]
    }[]
    readonly asks: { readonly waiting?: { readonly digest: string } }
  }
  const review = async (...flags: readonly string[]): Promise<Report> => {
    const ended = await run("review", "hello-say", "--manifests", "h", ...flags)
    expect(ended.code).toBe(0)
    return JSON.parse(ended.stdout) as Report
  }
  const rowsOf = ({ page: sections }: Report, title: string): readonly string[] =>
    sections.find((each) => each.title.startsWith(title))?.rows.map(({ text }) => text) ?? []
  const first = await review("--html", "page.html")
  expect(rowsOf(first, "What changed")).toEqual([])
  expect(rowsOf(first, "What it asks")).toContain("program hello-say")
  expect(readFileSync(join(room.folder, "page.html"), "utf8")).toContain("<code>program hello-say</code>")
  // A page is a new file.
  expect((await run("review", "hello-say", "--manifests", "h", "--html", "page.html")).code).toBe(2)

  const file = join(room.folder, "h", "DRIVER.md")
  writeFileSync(
    file,
    readFileSync(file, "utf8").replace("exec:\n    allow: false", "exec:\n    allow: true\n    spawn: [sh]"),
  )
  const changed = await review()
  expect(rowsOf(changed, "What changed").filter((row) => !row.includes("files of its own"))).toEqual(["+ starts sh"])
  expect(rowsOf(changed, "What is risky")).toEqual(["starts sh"])
  const accepted = await review("--accept", changed.asks.waiting?.digest ?? "")
  expect(accepted.asks.waiting).toBeUndefined()
  expect(rowsOf(await review(), "What changed")).toEqual([])
  expect(existsSync(join(room.folder, "h", "page.html"))).toBe(false)
})
