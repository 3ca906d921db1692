/** What the tool `bench.many` runs, for measurements of it without a sandbox. */
import { readFileSync } from "node:fs"
import { fileURLToPath } from "node:url"

const text = readFileSync(fileURLToPath(new URL("./manifests/many/DRIVER.md", import.meta.url)), "utf8")
export const script = JSON.parse(/argv: \["-c", ("(?:[^"\\]|\\.)*")/.exec(text)?.[1] ?? '""') as string
