/** What a program printed, read within the call's time. */
import { rmSync } from "node:fs"
import { afterEach, describe, expect, it } from "vitest"
import { readOutput } from "../../../../src/host/call/running/read-output.ts"
import type { ProgramCommand } from "../../../../src/host/drivers/kind.ts"
import type { Failure, Success } from "../../../../src/host/failure.ts"
import type { CollectedSandbox } from "../../../../src/sandbox/backend.ts"
import { type Place, scopes, sealedOf, toolOf, value, worldOf } from "../values.ts"

const made: Place[] = []
afterEach(() => {
  for (const { folder } of made.splice(0)) rmSync(folder, { recursive: true, force: true })
})
const empty = { bytes: new Uint8Array(), truncated: false, total: 0 }
const good: Success = { ok: true, value: "read", notes: [] }
const bad: Failure = { ok: false, code: "output_parse_failed", message: "no form", details: {} }

const read = async (how: ProgramCommand["read"], leftMs: number, cancel = new AbortController()) => {
  const place = worldOf()
  made.push(place)
  const { signal } = cancel
  const command = { run: "program", argv: [], stdin: new Uint8Array(), format: "text", read: how } as const
  const exited = { ending: { by: "exit", code: 0 }, stdout: empty, stderr: empty } as unknown as CollectedSandbox
  const sealed = value(await sealedOf(place))
  const tool = toolOf({ mutates: scopes("external:mail") })
  return readOutput({ ...sealed, tool, signal }, command, exited, 0, performance.now() + leftMs)
}
const untilOver =
  (onOver: () => Success | Failure): ProgramCommand["read"] =>
  (_result, signal) =>
    new Promise((resolve) => signal.addEventListener("abort", () => resolve(onOver()), { once: true }))

describe("the reading of a program's output", () => {
  it("is what its kind reads", async () => {
    expect(await read(() => good, 30_000)).toBe(good)
    expect(await read(async () => bad, 30_000)).toBe(bad)
  })
  it("is told when the call's time is over, and is a call that took too long, whatever it says of that", async () => {
    const late = { code: "timeout", details: { limit: "wall", commit: "unknown" } }
    expect(
      await read(
        untilOver(() => bad),
        20,
      ),
    ).toMatchObject(late)
    expect(await read(() => new Promise(() => undefined), 20)).toMatchObject(late)
    expect(await read(() => new Promise(() => undefined), -1)).toMatchObject(late)
  })
  it("is told when the call is cancelled, and is a call that was", async () => {
    for (const how of [untilOver(() => bad), () => new Promise<Success>(() => undefined)]) {
      const cancel = new AbortController()
      const reading = read(how, 30_000, cancel)
      cancel.abort()
      expect(await reading).toMatchObject({ code: "cancelled" })
    }
  })
  it("that breaks is a bug", async () => {
    const broken = (): never => {
      throw new RangeError("bug")
    }
    await expect(read(broken, 30_000)).rejects.toThrow("bug")
  })
})
