/** `node scripts/formats-table.ts`: the tables in docs/formats.md, made of the formats' own lists of fields. */
import { readFileSync, writeFileSync } from "node:fs"
import { fileURLToPath } from "node:url"
import { withTables } from "../test/manifest/formats/tables.ts"

const file = fileURLToPath(new URL("../docs/formats.md", import.meta.url))
writeFileSync(file, withTables(readFileSync(file, "utf8")))
