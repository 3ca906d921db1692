import { chmodSync, mkdirSync, mkdtempSync, rmSync, statSync, symlinkSync, writeFileSync } from "node:fs"
import { tmpdir, userInfo } from "node:os"
import { join } from "node:path"
import { afterEach, beforeEach, describe, expect, it } from "vitest"
import { loadConfig } from "../../../src/host/config/load.ts"
import { isWithin } from "../../../src/host/access/caller.ts"
import { osUser } from "../../../src/host/access/os-user.ts"
import { dataFolderOf, openDataFolder } from "../../../src/host/data/folder.ts"

let root: string
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "caisson-data-"))
})
afterEach(() => rmSync(root, { recursive: true, force: true }))

describe("the data folder", () => {
  it("is the one named, else $CAISSON_DATA, else ~/.caisson", () => {
    expect(dataFolderOf("/a", { CAISSON_DATA: "/b" })).toBe("/a")
    expect(dataFolderOf(undefined, { CAISSON_DATA: "/b" })).toBe("/b")
    expect(dataFolderOf(undefined, { CAISSON_DATA: "" })).toMatch(/\/\.caisson$/)
  })

  it.each(["", "relative", "."])(
    "is the user's own where HOME is %j, never one that came with the folder we are in",
    (home) => {
      const before = process.env["HOME"]
      process.env["HOME"] = home
      try {
        expect(dataFolderOf(undefined, {})).toBe(join(userInfo().homedir, ".caisson"))
      } finally {
        if (before === undefined) delete process.env["HOME"]
        else process.env["HOME"] = before
      }
    },
  )

  it("is made closed to everybody else", () => {
    const data = openDataFolder(join(root, "deep", "data"))
    expect(statSync(data).mode & 0o777).toBe(0o700)
    expect(statSync(join(data, "keys")).mode & 0o777).toBe(0o700)
  })

  it("is refused when others can read it, with the command that mends it", () => {
    openDataFolder(root)
    chmodSync(root, 0o755)
    expect(() => openDataFolder(root)).toThrow(expect.objectContaining({ code: "internal", fix: `chmod 700 ${root}` }))
  })

  it("is closed when it was open but holds nothing, or only a config that others cannot have written", () => {
    chmodSync(root, 0o755)
    writeFileSync(join(root, "caisson.yaml"), "")
    expect(statSync(openDataFolder(root)).mode & 0o777).toBe(0o700)
    rmSync(root, { recursive: true })
    mkdirSync(root)
    chmodSync(root, 0o777)
    expect(statSync(openDataFolder(root)).mode & 0o777).toBe(0o700)
  })

  it("is refused when others could have put the config there", () => {
    chmodSync(root, 0o775)
    writeFileSync(join(root, "caisson.yaml"), "")
    expect(() => openDataFolder(root)).toThrow(expect.objectContaining({ code: "internal", fix: `chmod 700 ${root}` }))
  })

  it("is refused when nothing can be made in it", () => {
    writeFileSync(join(root, "audit"), "")
    chmodSync(root, 0o700)
    expect(() => openDataFolder(root)).toThrow(
      expect.objectContaining({ code: "internal", message: expect.stringContaining("cannot be written") }),
    )
  })

  it("is refused when it is a file", () => {
    writeFileSync(join(root, "file"), "")
    expect(() => openDataFolder(join(root, "file"))).toThrow(expect.objectContaining({ code: "internal" }))
  })

  it("is looked at through symlinks", () => {
    openDataFolder(root)
    chmodSync(root, 0o755)
    symlinkSync(root, `${root}.link`)
    try {
      expect(() => openDataFolder(`${root}.link`)).toThrow(expect.objectContaining({ code: "internal" }))
    } finally {
      rmSync(`${root}.link`)
    }
  })

  it("tells a folder below from a folder with the same beginning", () => {
    expect([
      isWithin("/a/b", "/a"),
      isWithin("/a", "/a"),
      isWithin("/ab", "/a"),
      isWithin("/a", "/a/b"),
      isWithin("/x", "/"),
      isWithin("/a", "/a/"),
      isWithin("/ab", "/a/"),
    ]).toEqual([true, true, false, false, true, true, false])
  })
})

describe("the OS user", () => {
  it("goes by its name, or by its number where it has none that is a user id", () => {
    expect(osUser("alice")).toBe("alice")
    for (const odd of ["_apt", "", "DOMAIN\\alice", "a".repeat(65)])
      expect(osUser(odd)).toBe(`uid-${process.getuid?.()}`)
  })
})

describe("the config file", () => {
  it("is optional in the data folder and needed where it is named", () => {
    expect(loadConfig(root, undefined).backend).toBe("namespace")
    expect(() => loadConfig(root, join(root, "none.yaml"))).toThrow(expect.objectContaining({ code: "not_found" }))
  })

  it("is refused when it names manifests that are not there, with the entry's place", () => {
    writeFileSync(join(root, "caisson.yaml"), "manifests: [./tools, ./typo]\n")
    mkdirSync(join(root, "tools"))
    expect(() => loadConfig(root, undefined)).toThrow(/manifests\[1\]: there is nothing at .*\/typo/)
    mkdirSync(join(root, "typo"))
    expect(loadConfig(root, undefined).manifests).toHaveLength(2)
  })

  it("is refused when others can write it", () => {
    const file = join(root, "caisson.yaml")
    writeFileSync(file, "backend: namespace\n")
    chmodSync(file, 0o666)
    expect(() => loadConfig(root, undefined)).toThrow(
      expect.objectContaining({ code: "manifest_invalid", fix: `chmod go-w ${file}` }),
    )
  })

  it("stops the start with its first fault and carries them all", () => {
    writeFileSync(join(root, "caisson.yaml"), "bakend: docker\nenv: { PATH: x }\n", { mode: 0o600 })
    expect(() => loadConfig(root, undefined)).toThrow(
      expect.objectContaining({
        code: "manifest_invalid",
        message: expect.stringContaining("bakend"),
        diagnostics: [expect.anything(), expect.anything()],
      }),
    )
  })
})
