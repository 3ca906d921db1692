import { readdirSync, readFileSync } from "node:fs"
import { join, relative } from "node:path"
import { expect, it } from "vitest"

const host = join(import.meta.dirname, "../../src/host")
/** asks which Debian packages hold the programs of a layer, by the names that cli drivers give them */
const allowed = ["assemble/docker.ts"]

it("nothing of the host outside `drivers/` knows what a kind of driver is made of", () => {
  const knowing = readdirSync(host, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && entry.name.endsWith(".ts"))
    .map((entry) => join(entry.parentPath, entry.name))
    .filter((file) => !relative(host, file).startsWith("drivers/"))
    .filter((file) =>
      /\bcliOf\b|body\.kind\s*[!=]==|\.(?:cli|http|mcp|sdk|builtin)\?\.|drivers\/(?:cli|http|mcp|sdk|builtin)\//.test(
        readFileSync(file, "utf8"),
      ),
    )
    .map((file) => relative(host, file))
  expect(knowing).toEqual(allowed)
})
