import { expect, it } from "vitest"
import { extract } from "../../../src/host/invoke/extract.ts"
import { parseExtract } from "../../../src/manifest/templates/extract.ts"
import type { JsonValue } from "../../../src/manifest/types.ts"

const value = {
  data: [{ url: "a", kind: "x" }, { url: "b" }, { kind: "x" }],
  n: 0,
  none: null,
  nested: { deep: [[1], [2]] },
}

// biome-ignore format: a table reads by rows
it.each([
  ["$", value],
  ["$.n", 0],
  ["$.none", null],
  ["$.data[0].url", "a"],
  ["$.data[*].url", ["a", "b"]],
  ["$.data[?(@.kind=='x')].url", ["a"]],
  ["$.data[?(@.kind=='y')]", []],
  ["$.nested.deep[*][0]", [1, 2]],
  ["$.gone", undefined],
  ["$.n.gone", undefined],
  ["$.data[9]", undefined],
  ["$.data.length", undefined],
  ["$.nested[0]", undefined],
  ["$.toString", undefined],
  ["$.constructor.name", undefined],
  ["$.none.x", undefined],
] as [string, JsonValue | undefined][])("%s", (path, expected) => {
  expect(extract(value, parseExtract(path) ?? [])).toEqual(expected)
})
