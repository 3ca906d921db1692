import { execFileSync } from "node:child_process"
import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { splitWords } from "../../../../src/host/drivers/program/shell-words.ts"

const env = { HOME: "/home/x", KUBECONFIG: "/k c", EMPTY: "" }
const split = (text: string): readonly string[] | string => {
  const found = splitWords(text, env)
  return found.ok ? found.words : found.needsShell ? `shell: ${found.why}` : `bad: ${found.problem}`
}

describe("command strings", () => {
  // biome-ignore format: a table reads by rows
  it.each<[string, readonly string[]]>([
    ["jq --version", ["jq", "--version"]],
    ["  a\t b ", ["a", "b"]],
    ["node -e 'console.log(\"$x; | *\")'", ["node", "-e", 'console.log("$x; | *")']],
    ['x "a b" c"d"\'e\'f', ["x", "a b", "cdef"]],
    ['x "" \'\'', ["x", "", ""]],
    ['x "\\"\\$\\`\\\\\\n"', ["x", '"$`\\\\n']],
    ["x a\\ b \\$HOME \\'", ["x", "a b", "$HOME", "'"]],
    ["kubectl --kubeconfig $KUBECONFIG", ["kubectl", "--kubeconfig", "/k c"]],
    ['x "${KUBECONFIG}" ${HOME}/y', ["x", "/k c", "/home/x/y"]],
    ["x $EMPTY $UNSET y", ["x", "y"]],
    ['x "$EMPTY" a$UNSET', ["x", "", "a"]],
    ["x '$HOME'", ["x", "$HOME"]],
    ["x ~ ~/.kube a~ '~'", ["x", "/home/x", "/home/x/.kube", "a~", "~"]],
    ["x --a=b a#b $ \"$\"", ["x", "--a=b", "a#b", "$", "$"]],
  ])("splits %j", (text, words) => {
    expect(split(text)).toEqual(words)
  })

  // biome-ignore format: a table reads by rows
  it.each([
    "a | b", "a && b", "a; b", "a > f", "a < f", "a 2>&1", "(a)", "a `b`", "a $(b)", 'a "$(b)"', 'a "`b`"', "a *", "a ?.x", "a [x]", "a {b,c}", "A=1 b", "a # b",
    "a $1", "a $?", "a ${X:-y}", "a\nb", "a ~bob/x",
  ])("flags %j as needing a shell", text => {
    expect(split(text)).toMatch(/^shell: ./)
  })

  it.each(["", "   ", "a 'b", 'a "b', "a \\", "a\0b"])("refuses %j", (text) => {
    expect(split(text)).toMatch(/^bad: ./)
  })

  it("flags ~ where there is no HOME", () => {
    expect(splitWords("a ~", {})).toMatchObject({ ok: false, needsShell: true })
  })

  it("does not read a variable's value again", () => {
    expect(splitWords("a $V", { V: "x; $(id) 'y" })).toEqual({ ok: true, words: ["a", "x; $(id) 'y"] })
  })

  it("does not read inherited variables", () => {
    expect(splitWords("a $toString b", {})).toEqual({ ok: true, words: ["a", "b"] })
  })

  it("splits whatever it takes exactly as sh does", () => {
    const piece = fc.constantFrom("a", "b c", "'", '"', "\\", " ", "$V", "${V}", "-x", "=", "~", "#", "$", "1", "é")
    const texts = fc.sample(
      fc.array(piece, { minLength: 1, maxLength: 7 }).map((each) => `p ${each.join("")}`),
      { numRuns: 150, seed: 7 },
    )
    const values = { V: "v", HOME: "/h" }
    const taken = [...new Set(texts)].flatMap((text) => {
      const found = splitWords(text, values)
      return found.ok ? [{ text, words: found.words }] : []
    })
    expect(taken.length).toBeGreaterThan(30)
    const script = taken.map(({ text }) => `p() { printf '%s\\0' "$@"; printf '\\1\\0'; }\n${text}`).join("\n")
    const out = execFileSync("/bin/sh", ["-c", script], { env: values }).toString()
    const fromShell = out
      .split("\x01\0")
      .slice(0, -1)
      .map((each) => each.split("\0").slice(0, -1))
    const ours = taken.map(({ words }) => (words.length === 1 ? [""] : words.slice(1)))
    expect(fromShell).toEqual(ours)
  })
})
