/**
 * The files that a driver brings along and has run, by one digest, so that another program under the same manifest is seen.
 *
 * Guarantees: reads only; no link is followed and nothing is waited for. A folder with more in it than is looked at says so.
 * Assumes: what a sandbox is shown of a driver is its manifest's folder.
 */
import { createHash } from "node:crypto"
import { lstatSync, readdirSync, readlinkSync } from "node:fs"
import { dirname, join } from "node:path"
import { readBounded } from "../../../manifest/read/bounded.ts"
import { writtenFile } from "../../../manifest/formats/format.ts"
import type { DriverContract } from "../../../manifest/types.ts"

const FILES = 2000
const BYTES = 64 * 1024 * 1024

const brings = ({ body, code, bundle, install }: DriverContract): boolean =>
  code !== undefined ||
  bundle !== undefined ||
  install.some((method) => method.usable && method.method === "vendored") ||
  (body.kind === "cli" && body.cli.bin.includes("/")) ||
  (body.kind === "sdk" && body.sdk.packageManager === "local") ||
  (body.kind === "mcp" && body.mcp.server.kind === "binary" && body.mcp.server.path.includes("/"))

class TooMuch extends Error {}

const digestOf = (root: string): string => {
  const hash = createHash("sha256")
  let [entries, files, bytes] = [0, 0, 0]
  const visit = (folder: string, name: string): void => {
    for (const entry of readdirSync(folder).toSorted()) {
      const [path, shown] = [join(folder, entry), name === "" ? entry : `${name}/${entry}`]
      const facts = lstatSync(path)
      entries += 1
      if (entries > FILES) throw new TooMuch()
      if (facts.isDirectory()) {
        visit(path, shown)
        continue
      }
      files += 1
      bytes += facts.isFile() ? facts.size : 0
      if (bytes > BYTES) throw new TooMuch()
      const read = facts.isFile() ? readBounded(path, BYTES) : ""
      const content = typeof read === "string" ? read : createHash("sha256").update(read).digest("hex")
      const what = facts.isSymbolicLink()
        ? `link ${readlinkSync(path)}`
        : facts.isFile()
          ? `file ${content}`
          : "special"
      hash.update(`${JSON.stringify(shown)} ${(facts.mode & 0o111) === 0 ? "" : "x "}${what}\n`)
    }
  }
  visit(root, "")
  return `${files} of its folder, sha256:${hash.digest("hex")}`
}

/** Undefined: nothing that it brings is run. */
export const ownFiles = (driver: DriverContract): string | undefined => {
  if (!brings(driver)) return undefined
  try {
    return digestOf(dirname(writtenFile(driver.source.file)))
  } catch (error) {
    return error instanceof TooMuch
      ? `more than ${FILES}, or than ${BYTES} bytes: nobody compares them`
      : `which cannot be read: ${(error as NodeJS.ErrnoException).code ?? "unknown"}`
  }
}
