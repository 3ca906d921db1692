import { mkdirSync, mkdtempSync, rmSync, symlinkSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { describe, expect, it } from "vitest"
import { isInside, type Location, locatePath, namesBetween, placeOnDevice } from "../../../src/host/data/location.ts"

const mountinfo = [
  "22 1 254:0 / / rw,relatime - ext4 /dev/vda rw",
  "40 22 254:0 /home/u/.caisson/keys /mnt/part rw - ext4 /dev/vda rw",
  "41 22 254:0 /home /mnt/a\\040b rw - ext4 /dev/vda rw",
  "42 22 0:40 / /dev/shm rw - tmpfs tmpfs rw",
].join("\n")

describe("the place of a folder on its device", () => {
  it.each([
    ["22", "/home/u", { device: "254:0", path: "/home/u" }],
    ["22", "/", { device: "254:0", path: "/" }],
    ["40", "/mnt/part", { device: "254:0", path: "/home/u/.caisson/keys" }],
    ["40", "/mnt/part/x", { device: "254:0", path: "/home/u/.caisson/keys/x" }],
    ["41", "/mnt/a b/u", { device: "254:0", path: "/home/u" }],
    ["42", "/dev/shm", { device: "0:40", path: "/" }],
    ["40", "/elsewhere", undefined],
    ["99", "/home", undefined],
  ])("by mount %s at %s", (mount, path, place) => {
    expect(placeOnDevice(mountinfo, mount, path)).toEqual(place)
  })

  it("tells that one folder holds another, also where their chains do not meet", () => {
    const at = (mount: string, path: string, own: string): Location => ({
      chain: [own, "1:2"],
      onDevice: placeOnDevice(mountinfo, mount, path),
    })
    const data = at("22", "/home/u/.caisson", "1:10")
    const part = at("40", "/mnt/part", "1:11")
    const above = at("41", "/mnt/a b", "1:12")
    const other = at("42", "/dev/shm", "2:1")
    expect([isInside(part, data), isInside(data, part)]).toEqual([true, false])
    expect([isInside(data, above), isInside(above, data)]).toEqual([true, false])
    expect([isInside(data, other), isInside(other, data)]).toEqual([false, false])
    expect(namesBetween(data, above)).toBe("u/.caisson")
    expect(namesBetween(data, data)).toBe("")
  })
})

describe("a folder", () => {
  it("is inside another through a link too, and not inside one whose name only begins alike", () => {
    const base = mkdtempSync(join(tmpdir(), "caisson-location-"))
    try {
      for (const name of ["a/b", "ab"]) mkdirSync(join(base, name), { recursive: true })
      symlinkSync(join(base, "a"), join(base, "link"))
      const [outer, inner, alike] = ["a", "link/b", "ab"].map((name) => locatePath(join(base, name))) as [
        Location,
        Location,
        Location,
      ]
      expect(isInside(inner, outer)).toBe(true)
      expect(isInside(outer, inner)).toBe(false)
      expect(isInside(alike, outer)).toBe(false)
    } finally {
      rmSync(base, { recursive: true, force: true })
    }
  })
})
