/** The tour, run as `npm start` runs it. */
import { readdirSync } from "node:fs"
import { tmpdir } from "node:os"
import { fileURLToPath } from "node:url"
import { execa } from "execa"
import { expect, test } from "vitest"

const entry = fileURLToPath(new URL("../../src/cli/tour.ts", import.meta.url))
const leftovers = (): string[] => readdirSync(tmpdir()).filter((name) => name.startsWith("caisson-tour-"))

test("the tour shows three calls that end as promised, verifies their receipts and leaves nothing", async () => {
  const before = leftovers()
  const { exitCode, stdout, stderr } = await execa(process.execPath, [entry], { reject: false, env: { NO_COLOR: "1" } })
  expect(stderr).toBe("")
  expect(stdout.match(/^as promised$/gm)).toHaveLength(3)
  expect(stdout).not.toContain("NOT as promised")
  expect(stdout).toMatch(/A notes\/monday\.txt.*declared/)
  expect(stdout).toMatch(/D ledger\.csv.*undeclared, not committed/)
  expect(stdout).toMatch(/egress telemetry\.example\.net:443/)
  expect(stdout.match(/receipt sha256:[0-9a-f]{64}/g)).toHaveLength(3)
  expect(stdout).toMatch(/tour's own data folder.*\n\$ npx caisson verify\nok {2}3 entries/)
  expect(exitCode).toBe(0)
  expect(leftovers()).toEqual(before)
})
