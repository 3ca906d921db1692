import { readFileSync } from "node:fs"
import { join } from "node:path"
import { expect, it } from "vitest"
import { readConfig } from "../../../src/host/config/read.ts"
import { defaultConfig } from "../../../src/host/config/types.ts"

it("the documented config is valid and shows every setting", () => {
  const text = readFileSync(join(import.meta.dirname, "../../../docs/config.md"), "utf8")
  const example = /```yaml\n([\s\S]*?)```/.exec(text)?.[1] ?? ""
  const read = readConfig(example, "/etc/caisson.yaml", "/etc")
  expect(read).toMatchObject({ ok: true })
  const known = Object.keys(defaultConfig)
  expect(
    read.ok &&
      Object.keys(read.config)
        .filter((key) => key !== "file")
        .sort(),
  ).toEqual([...known, "dataClasses", "region", "store", "vault", "workspaces"].sort())
  expect(read.ok && Object.keys(read.config.limits)).toHaveLength(8)
  expect(read.ok && Object.keys(read.config.egress).sort()).toEqual(["allow", "budgets", "private", "services"])
})
