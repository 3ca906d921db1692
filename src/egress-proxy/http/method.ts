/**
 * Does a request only read, as far as its head tells? Pure.
 *
 * Guarantees: GET, HEAD and OPTIONS read, unless a header or a parameter of the query says that another method is
 * meant, by any of the names that web frameworks heed; with `_` for `-` too, since CGI and WSGI see no difference.
 * Does not: know what a server does on a GET.
 */
import type { Header } from "./head.ts"

const safeMethods: ReadonlySet<string> = new Set(["GET", "HEAD", "OPTIONS"])

const overrides: ReadonlySet<string> = new Set([
  "x-http-method-override",
  "x-http-method",
  "x-method-override",
  "x-method",
  "x-original-method",
  "x-requested-method",
  "x-rest-method",
])
const queryOverrides: ReadonlySet<string> = new Set([
  ...overrides,
  "-method",
  "-httpmethod",
  "$httpmethod",
  "httpmethod",
])

const plain = (name: string): string => name.toLowerCase().replaceAll("_", "-")
const isSafeWord = (value: string): boolean => safeMethods.has(value.trim().toUpperCase())

export const isSafeMethod = (method: string): boolean => safeMethods.has(method)

/** @param target path and query */
export function isOverridden(headers: readonly Header[], target: string): boolean {
  if (headers.some(([name, value]) => overrides.has(plain(name)) && !isSafeWord(value))) return true
  const query = target.indexOf("?")
  if (query < 0 || !/method/i.test(unescaped(target))) return false
  return [...new URLSearchParams(target.slice(query + 1).replaceAll(";", "&"))].some(
    ([name, value]) => queryOverrides.has(plain(name)) && !isSafeWord(value),
  )
}

/** One layer of percent-encoding undone, for a first look. */
const unescaped = (text: string): string =>
  text.includes("%")
    ? text.replace(/%([0-9a-f]{2})/gi, (_, hex: string) => String.fromCharCode(parseInt(hex, 16)))
    : text
