/**
 * Addresses that a program prints for a person to open, with the code that it prints before them.
 *
 * Guarantees: only http and https, each once, and not the bare address that a program says it listens at; bounded in number
 * and length, however the output is cut. Escape sequences of a terminal are no part of them. They are a stranger's word, and
 * marked as that.
 */
import { stripVTControlCharacters } from "node:util"
import type { PageToOpen } from "../../person.ts"
import { loginLimits } from "../limits.ts"

const ADDRESS = /https?:\/\/[^\s"'<>`\\^{}|\p{Cc}]+/gu
/** As device flows have it: two groups of four. */
const CODE = /\b[A-Z0-9]{4}-[A-Z0-9]{4}\b/
const LOOPBACK: ReadonlySet<string> = new Set(["127.0.0.1", "localhost", "[::1]"])
const isBareListener = (url: string): boolean => {
  const { hostname, pathname, search } = new URL(url)
  return LOOPBACK.has(hostname) && pathname === "/" && search === ""
}
const TRAILING = /[.,;:!?)\]]+$/

/** Hears output as it comes; tells of each page once its line is whole, or the output is over. */
interface PageWatcher {
  hear(bytes: Uint8Array): void
  end(): void
}

export const watchPages = (open: (page: PageToOpen) => void): PageWatcher => {
  const decoder = new TextDecoder()
  const most = loginLimits.pageChars.value
  const told = new Set<string>()
  let rest = ""
  let code: string | undefined
  const read = (line: string): void => {
    const text = stripVTControlCharacters(line)
    code = CODE.exec(text.replace(ADDRESS, " "))?.[0] ?? code
    for (const [found] of text.matchAll(ADDRESS)) {
      const url = found.replace(TRAILING, "")
      if (url.length > most || told.has(url) || told.size >= loginLimits.pages.value || !URL.canParse(url)) continue
      if (isBareListener(url)) continue
      told.add(url)
      open({ url, from: "program", ...(code === undefined ? {} : { code }) })
    }
  }
  return {
    hear: (bytes) => {
      const lines = (rest + decoder.decode(bytes, { stream: true })).split(/[\r\n]/)
      // A line that never ends is read by its beginning.
      rest = (lines.pop() ?? "").slice(0, 2 * most)
      for (const line of lines) read(line.slice(0, 2 * most))
    },
    end: () => {
      read(rest)
      rest = ""
    },
  }
}
