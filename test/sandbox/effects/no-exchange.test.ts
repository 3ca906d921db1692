import { readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, it, vi } from "vitest"
import { recoverWorkspace } from "../../../src/sandbox/effects/commit/recovery/recover.ts"
import type * as fileCalls from "../../../src/linux/files.ts"
import { SyscallError } from "../../../src/linux/libc.ts"
import { PlainLayers } from "./fixtures/plain-layer.ts"
import { listTree } from "./fixtures/tree.ts"

/** A file system as NFS or 9p: a rename takes no flags. */
vi.mock("../../../src/linux/files.ts", async (original) => {
  const real = await original<typeof fileCalls>()
  return {
    ...real,
    renameat2: (oldDir: number, oldPath: string, newDir: number, newPath: string, flags = 0) => {
      if (flags !== 0) throw new SyscallError("renameat2", 22, "")
      real.renameat2(oldDir, oldPath, newDir, newPath, flags)
    },
  }
})

const files = { a: "a", b: "b", "d/x": "x", "to-folder": "f" }
const changes = { a: "A", "d/x": "X", n: "n", "new/deep/er": "1", "to-folder/g": "g" }

describe("a file system that cannot exchange two names", () => {
  it("takes a commit all the same", async () => {
    using layers = new PlainLayers(files)
    expect(await layers.begin(changes)()).toEqual({ ok: true })
    expect(listTree(layers.workspace).map((line) => line.split(" ").slice(0, 3).join(" "))).toEqual([
      "a file 1",
      "b file 1",
      "d dir 755",
      "d/x file 1",
      "n file 1",
      "new dir 755",
      "new/deep dir 755",
      "new/deep/er file 1",
      "to-folder dir 755",
      "to-folder/g file 1",
    ])
  })

  it("undoes a commit that stops at any step, also when undoing stops once", async () => {
    const steps: string[] = []
    {
      using layers = new PlainLayers(files)
      await layers.begin(changes)({ failpoint: (name) => void steps.push(name) })
    }
    expect(steps).toContain("between")
    for (let step = 0; step < steps.indexOf("done"); step++) {
      for (let undone = 0; undone < 6; undone++) {
        using layers = new PlainLayers(files)
        const was = listTree(layers.workspace, { times: true })
        let at = 0
        let undos = 0
        const result = await layers.begin(changes)({
          failpoint: (name) => {
            if (at++ === step || (name === "undo" && undos++ === undone)) throw new Error(`EIO: at ${name}`)
          },
        })
        expect(result.ok).toBe(false)
        await recoverWorkspace({ workspace: layers.workspace, txRoot: layers.txRoot })
        expect(listTree(layers.workspace, { times: true }), `step ${step}, undo ${undone}`).toEqual(was)
      }
    }
  })

  it("still does not overwrite a name that was taken while the commit was being made ready", async () => {
    using layers = new PlainLayers(files)
    const result = await layers.begin({ a: "A", n: "mine" })({
      failpoint: (name) => {
        if (name === "journal") writeFileSync(join(layers.workspace, "n"), "theirs")
      },
    })
    expect(result).toEqual({ ok: false, reason: "conflict", paths: ["n"] })
    expect(readFileSync(join(layers.workspace, "n"), "utf8")).toBe("theirs")
    expect(readFileSync(join(layers.workspace, "a"), "utf8")).toBe("a")
  })
})
