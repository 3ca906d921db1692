import { expect, test } from "vitest"
import { ambiguousRepetition } from "../../../src/manifest/schema/ambiguous-pattern.ts"
import { compilePattern } from "../../../src/manifest/schema/pattern.ts"

test.each([
  ["^(a+)+$", "(a+)+"],
  ["(a*)*b", "(a*)*"],
  ["^(?:\\w+)*$", "(?:\\w+)*"],
  ["([a-z]{2,})+", "([a-z]{2,})+"],
  ["(.*)*", "(.*)*"],
  ["(a|aa)+", "(a|aa)+"],
  ["(a|a)*", "(a|a)*"],
  ["x(y(a+)+)z", "(a+)+"],
  ["(?<word>\\d+){2,}", "(?<word>\\d+){2,}"],
])("%s is refused for %s", (source, group) => {
  expect(ambiguousRepetition(source)).toBe(group)
  const result = compilePattern(source)
  expect(result.ok).toBe(false)
  if (!result.ok) expect(result.fix).not.toBe("")
})

test.each([
  "^([a-z]+\\.)+[a-z]+$",
  "^(?:[a-z0-9]+-)*[a-z0-9]+$",
  "^(a|b)+$",
  "^\\(a+\\)+$",
  "[(a+)+]",
  "^(\\d{3})+$",
  "^(a+)?$",
  "^(ab+c)*$",
  "(a+)",
])("%s is left alone", (source) => {
  expect(ambiguousRepetition(source)).toBeUndefined()
  expect(compilePattern(source).ok).toBe(true)
})
