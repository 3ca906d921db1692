import { describe, expect, it } from "vitest"
import { isOver } from "../../../src/host/store/instant.ts"
import { began, later } from "./instants.ts"

const hour = 3_600_000

describe("a wait that began at one moment", () => {
  it("is over by the machine's clock, wherever the wall's was set", () => {
    expect(isOver(began, hour, { ...later(hour - 1), wallMs: began.wallMs + 100 * hour })).toBe(false)
    expect(isOver(began, hour, { ...later(hour), wallMs: 0 })).toBe(true)
  })
  it("is decided by the wall clock after a reboot, and over where that went back", () => {
    const rebooted = { ...later(hour - 1), boot: "boot-b", upMs: 1 }
    expect(isOver(began, hour, rebooted)).toBe(false)
    expect(isOver(began, hour, { ...rebooted, wallMs: began.wallMs + hour })).toBe(true)
    expect(isOver(began, hour, { ...rebooted, wallMs: began.wallMs - 1 })).toBe(true)
  })
  it("is decided by the wall clock where a container's own uptime began anew on the same boot of the machine", () => {
    const restarted = { ...later(hour), upMs: 1 }
    expect(isOver(began, hour, restarted)).toBe(true)
    expect(isOver(began, hour, { ...restarted, wallMs: began.wallMs + hour - 1 })).toBe(false)
  })
})
