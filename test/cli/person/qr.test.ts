/** QR codes for terminals, read back from what is drawn by a reader that somebody else wrote. */
import { spawnSync } from "node:child_process"
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { stripVTControlCharacters } from "node:util"
import pc from "picocolors"
import { expect, it } from "vitest"
import { qrLines } from "../../../src/cli/person/qr.ts"
import { testNeeding } from "../../support/needing.ts"
import { ensurePrograms } from "../../support/servers/packages.ts"

const colours = pc.createColors(true)
const place = { paint: colours, columns: 80, wide: true }
const address = "https://id.example.com/device?user_code=WXYZ-1234"

/** As a screen shows it: each half of a character is a square of so many pixels. */
const SCALE = 6
const drawn = (lines: readonly string[]): Buffer => {
  const rows = lines.flatMap((line) => {
    const halves = [...stripVTControlCharacters(line)]
    return [halves.map((half) => "▀█".includes(half)), halves.map((half) => "▄█".includes(half))]
  })
  const width = rows[0]?.length ?? 0
  const pixels = rows.flatMap((row) => {
    const line = row.flatMap((dark) => Array<number>(SCALE).fill(dark ? 0 : 255))
    return Array<number[]>(SCALE).fill(line)
  })
  return Buffer.concat([Buffer.from(`P5 ${width * SCALE} ${rows.length * SCALE} 255\n`), Buffer.from(pixels.flat())])
}

testNeeding("what is drawn is what a reader reads", ensurePrograms({ zbarimg: "zbar-tools" }), () => {
  const folder = mkdtempSync(join(tmpdir(), "caisson-qr-"))
  try {
    for (const text of [address, "https://a.test/", `https://a.test/?${"x".repeat(180)}`]) {
      const lines = qrLines(text, place)
      const file = join(folder, "code.pgm")
      writeFileSync(file, drawn(lines ?? []))
      const read = spawnSync("zbarimg", ["--quiet", "--raw", file], { encoding: "utf8" })
      expect(read.stdout).toBe(`${text}\n`)
    }
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
})

it("is dark on light by its own colours, in lines of one width that fit", () => {
  const lines = qrLines(address, place) ?? []
  for (const line of lines) expect(line.startsWith("\u001b[107m\u001b[30m")).toBe(true)
  expect(new Set(lines.map((line) => stripVTControlCharacters(line).length)).size).toBe(1)
  const size = stripVTControlCharacters(lines[0] ?? "").length
  expect(qrLines(address, { ...place, columns: size })).toEqual(lines)
  expect(qrLines(address, { ...place, columns: size - 1 })).toBeUndefined()
})

it.each([
  ["without colours", { paint: pc.createColors(false) }, address],
  ["in ASCII", { wide: false }, address],
  ["for an address that no telephone would read", {}, `https://a.test/?${"x".repeat(200)}`],
])("is left out %s", (_what, more, text) => {
  expect(qrLines(text, { ...place, ...more })).toBeUndefined()
})
