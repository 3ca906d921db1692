/** A file is replaced whole, wherever it lies and whatever was put in the way. */
import { mkdirSync, readdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { afterEach, beforeEach, expect, test } from "vitest"
import { writeWhole } from "../../../src/host/data/write-whole.ts"
import { scratch } from "../../cli/run-caisson.ts"

let room: ReturnType<typeof scratch>
beforeEach(() => {
  room = scratch()
})
afterEach(() => room[Symbol.dispose]())

test("replaces what is there, with the mode that was asked for, and leaves nothing else", () => {
  const file = join(room.folder, "new", "file")
  for (const text of ["one", "two"]) writeWhole(file, text, 0o600)
  expect(readFileSync(file, "utf8")).toBe("two")
  expect(statSync(file).mode & 0o777).toBe(0o600)
  expect(readdirSync(join(room.folder, "new"))).toEqual(["file"])
})

test("writes through no link that lies under the name, nor under the one that it has meanwhile", () => {
  const [file, victim, folder] = ["file", "victim", "folder"].map((name) => join(room.folder, name)) as [
    string,
    string,
    string,
  ]
  writeFileSync(victim, "mine")
  symlinkSync(victim, file)
  symlinkSync(victim, `${file}.${process.pid}.new`)
  writeWhole(file, "recorded", 0o600)
  expect(readFileSync(victim, "utf8")).toBe("mine")
  expect(readFileSync(file, "utf8")).toBe("recorded")
  mkdirSync(folder)
  mkdirSync(`${folder}/file.${process.pid}.new`)
  expect(() => writeWhole(join(folder, "file"), "recorded", 0o600)).toThrow()
  expect(readdirSync(folder)).toEqual([`file.${process.pid}.new`])
})
