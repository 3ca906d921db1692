import { mkdirSync, mkdtempSync, readdirSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest"
import { createProbe } from "../../../../src/host/call/running/outside/probe.ts"
import { hostLimits } from "../../../../src/host/limits.ts"
import type { ProbeRequest } from "../../../../src/host/drivers/program/version-check.ts"
import type { SandboxBackend } from "../../../../src/sandbox/backend.ts"
import { fakeBackend } from "../fake-backend.ts"
import { driverOf, programOf } from "../values.ts"

let data: string
beforeEach(() => {
  data = mkdtempSync(join(tmpdir(), "caisson-probe-"))
  mkdirSync(join(data, "tmp"))
})
afterEach(() => rmSync(data, { recursive: true, force: true }))

const request: ProbeRequest = {
  driver: driverOf(),
  program: programOf(),
  argv: ["scribe", "--version"],
  timeoutMs: 86_400_000,
  shell: false,
  spawn: {},
  env: {},
  children: false,
}

describe("version checks", () => {
  it("run so many at once and no more, however many drivers a folder brings", async () => {
    const most = hostLimits.concurrentProbes.value
    const backend = fakeBackend(...Array.from({ length: 40 }, () => ({ hang: true })))
    const closing = new AbortController()
    const probe = createProbe(data, async () => backend, closing.signal)
    const asked = Array.from({ length: 40 }, () => probe(request))
    await vi.waitUntil(() => backend.jobs.length === most)
    // What is not made cannot be left behind by a host that is killed now.
    expect(readdirSync(join(data, "tmp"))).toEqual([])
    await new Promise((resolve) => setImmediate(resolve))
    expect(backend.jobs.length).toBe(most)
    closing.abort()
    expect((await Promise.all(asked)).every((result) => !result.ran)).toBe(true)
    expect(backend.jobs.length).toBe(most)
  })

  it("are answered when the host closes, even if the sandbox never gets ready", async () => {
    const stuck = { ...fakeBackend(), prepare: () => new Promise<never>(() => undefined) } as SandboxBackend
    const closing = new AbortController()
    const asked = createProbe(data, async () => stuck, closing.signal)(request)
    closing.abort()
    expect(await asked).toMatchObject({ ran: false, reason: expect.stringContaining("not done within") })
  })
})
