import { spawn } from "node:child_process"
import { once } from "node:events"
import { createInterface } from "node:readline"
import { expect, test } from "vitest"

const program = `
  import { onInterrupt } from ${JSON.stringify(new URL("../../src/cli/interrupt.ts", import.meta.url).href)}
  const { signal } = onInterrupt(() => console.log("told"))
  signal.addEventListener("abort", () => { console.log("aborted"); setTimeout(() => console.log("later"), 400) })
  setInterval(() => {}, 1000)
  console.log("ready")
`

const start = () => {
  const child = spawn(process.execPath, ["--input-type=module", "-e", program], {
    stdio: ["ignore", "pipe", "inherit"],
  })
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
  const next = async (): Promise<string | undefined> => {
    const line = await lines.next()
    return line.done === true ? undefined : line.value
  }
  return { child, next, closed: once(child, "close") as Promise<[number | null, string | null]> }
}

test("the first signal aborts, and one that arrives with it is the same key press", async () => {
  const { child, next, closed } = start()
  expect(await next()).toBe("ready")
  child.kill("SIGINT")
  expect(await next()).toBe("told")
  expect(await next()).toBe("aborted")
  child.kill("SIGINT")
  expect(await next()).toBe("later")
  child.kill("SIGKILL")
  await closed
})

test.each([
  ["SIGINT", 130],
  ["SIGTERM", 143],
] as const)("a second %s later on ends the process at once", async (signal, code) => {
  const { child, next, closed } = start()
  expect(await next()).toBe("ready")
  child.kill("SIGINT")
  for (const line of ["told", "aborted", "later"]) expect(await next()).toBe(line)
  child.kill(signal)
  expect(await closed).toEqual([code, null])
})
