/** The page about a driver: what others wrote cannot become markup, a request or a steering of the terminal. */
import { existsSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { afterEach, beforeEach, describe, expect, test } from "vitest"
import { pageHtml, pageLines, type ReviewPage } from "../../../src/authoring/review/page.ts"
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

test("what a driver asks for is told beside what was accepted of it, until the change is accepted", {
  timeout: 120_000,
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
  expect(rowsOf(changed, "What changed")).toEqual(["+ starts sh"])
  expect(rowsOf(changed, "What is risky")).toEqual(["starts sh"])
  const accepted = await review("--accept", changed.asks.waiting?.digest ?? "")
  expect(accepted.asks.waiting).toBeUndefined()
  expect(rowsOf(await review(), "What changed")).toEqual([])
  expect(existsSync(join(room.folder, "h", "page.html"))).toBe(false)
})
