import fc from "fast-check"
import { expect, it } from "vitest"
import { loginLimits } from "../../../src/host/login/limits.ts"
import { watchPages } from "../../../src/host/login/methods/printed-pages.ts"
import type { PageToOpen } from "../../../src/host/person.ts"

const pagesIn = (...chunks: readonly (string | Uint8Array)[]): readonly PageToOpen[] => {
  const pages: PageToOpen[] = []
  const watcher = watchPages((page) => pages.push(page))
  for (const chunk of chunks) watcher.hear(typeof chunk === "string" ? new TextEncoder().encode(chunk) : chunk)
  watcher.end()
  return pages
}

it("finds an address and the code that was printed before it, as `gh` prints them", () => {
  const said =
    "\u001b[0;33m!\u001b[0m First copy your one-time code: \u001b[1mAB12-CD34\u001b[0m\r\n" +
    "Open this URL to continue in your web browser: https://github.com/login/device\r\n"
  expect(pagesIn(said)).toEqual([{ url: "https://github.com/login/device", code: "AB12-CD34", from: "program" }])
})

it("takes what ends a sentence for no part of an address, and tells of each once", () => {
  expect(pagesIn("See (https://a.test/x?y=1). Again: https://a.test/x?y=1\n").map(({ url }) => url)).toEqual([
    "https://a.test/x?y=1",
  ])
})

it.each(["javascript:alert(1)", "file:///etc/passwd", "ftp://a.test/", "ssh://a.test"])("offers no %s", (text) =>
  expect(pagesIn(`open ${text}\n`)).toEqual([]),
)

it.each(["http://127.0.0.1:8080", "http://localhost:8080/", "http://[::1]:8080/"])(
  "offers no %s: where a program listens is no page, until it names one there",
  (root) => {
    expect(pagesIn(`Listening on ${root}\n`)).toEqual([])
    const page = `${root.replace(/\/$/, "")}/auth?state=x`
    expect(pagesIn(`Listening on ${root}, open ${page}\n`).map(({ url }) => url)).toEqual([page])
    expect(pagesIn("see http://id.test/\n")).toHaveLength(1)
  },
)

it("offers so many pages and no more, and none that is too long", () => {
  const most = loginLimits.pages.value
  const addresses = Array.from({ length: most + 3 }, (_, n) => `https://a.test/${n}`)
  expect(pagesIn(addresses.join("\n"))).toHaveLength(most)
  const long = `https://a.test/${"x".repeat(loginLimits.pageChars.value)}`
  expect(pagesIn(`${long}\n`)).toEqual([])
  expect(pagesIn(`${long.slice(0, loginLimits.pageChars.value)}\n`)).toHaveLength(1)
})

it("finds the same, however the output is cut", () => {
  const bytes = new TextEncoder().encode("ä https://a.test/p code WXYZ-1234 https://b.test/ü?q\r\nend")
  fc.assert(
    fc.property(fc.array(fc.nat({ max: bytes.length }), { maxLength: 8 }), (cuts) => {
      const at = [0, ...cuts.toSorted((a, b) => a - b), bytes.length]
      const chunks = at.slice(1).map((end, n) => bytes.slice(at[n] ?? 0, end))
      expect(pagesIn(...chunks)).toEqual(pagesIn(bytes))
    }),
  )
  expect(pagesIn(bytes).map(({ url }) => url)).toEqual(["https://a.test/p", "https://b.test/ü?q"])
})
