import { appendFileSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, it } from "vitest"
import { recoverWorkspace } from "../../../src/sandbox/effects/commit/recovery/recover.ts"
import { errorCode } from "../../../src/sandbox/effects/beneath.ts"
import { readWriteSet } from "../../../src/sandbox/effects/read.ts"
import { llistxattr, lsetxattr } from "../../../src/linux/files.ts"
import { PlainLayers } from "./fixtures/plain-layer.ts"
import { listTree } from "./fixtures/tree.ts"

const files = { a: "a", b: "b", "d/x": "x", "d/y": "y" }
const changes = { a: "A", "d/x": "X", n: "n", "new/deep/er": "1", "new/2": "2" }
const failAt = (step: number, code: string) => {
  let at = 0
  const seen: string[] = []
  const failpoint = (name: string): void => {
    seen.push(name)
    if (at++ === step) throw Object.assign(new Error(`${code}: made to fail at ${name}`), { code })
  }
  return { seen, failpoint }
}

describe("a commit that fails half-way", () => {
  it("is undone fully, at whatever step and for whatever cause", async () => {
    const steps = await (async () => {
      using layers = new PlainLayers(files)
      const { seen, failpoint } = failAt(-1, "")
      expect(await layers.begin(changes)({ failpoint })).toEqual({ ok: true })
      return seen.length
    })()
    for (const code of ["ENOSPC", "EACCES", "EIO", "ENOENT"]) {
      for (let step = 0; step < steps; step++) {
        using layers = new PlainLayers(files)
        const was = listTree(layers.workspace, { times: true })
        const { seen, failpoint } = failAt(step, code)
        const result = await layers.begin(changes)({ failpoint })
        const committed = seen.includes("done")
        expect(result.ok, `${code} at ${seen.at(-1)}`).toBe(committed)
        if (!committed) expect(listTree(layers.workspace, { times: true })).toEqual(was)
        await recoverWorkspace({ workspace: layers.workspace, txRoot: layers.txRoot })
        expect(existsSync(layers.txRoot) ? readdirSync(layers.txRoot) : []).toEqual([])
      }
    }
  })

  it("says so when even undoing fails, and the next start undoes it", async () => {
    using layers = new PlainLayers(files)
    const was = listTree(layers.workspace)
    const result = await layers.begin(changes)({
      failpoint: (name) => {
        if (name === "synced" || name === "undo") throw new Error("EIO: the disk is gone")
      },
    })
    expect(result).toMatchObject({ ok: false, reason: "unknown", message: expect.stringContaining("next call") })
    expect(await recoverWorkspace({ workspace: layers.workspace, txRoot: layers.txRoot })).toEqual({
      finished: 0,
      undone: 1,
      foreign: [],
      malformed: [],
    })
    expect(listTree(layers.workspace)).toEqual(was)
  })
})

describe("recovery", () => {
  const crashed = async (layers: PlainLayers): Promise<void> => {
    await layers.begin(changes)({
      failpoint: (name) => {
        if (name === "synced" || name === "undo") throw new Error("crash")
      },
    })
  }
  const recover = (layers: PlainLayers) => recoverWorkspace({ workspace: layers.workspace, txRoot: layers.txRoot })

  it("leaves a file alone that another program wrote after the crash, keeps the old one aside and reports it", async () => {
    using layers = new PlainLayers(files)
    await crashed(layers)
    writeFileSync(join(layers.workspace, "a"), "mine, after the crash")
    const { foreign, undone } = await recover(layers)
    expect(undone).toBe(1)
    expect(foreign.map(({ path }) => path)).toEqual(["a"])
    expect(readFileSync(join(layers.workspace, "a"), "utf8")).toBe("mine, after the crash")
    expect(readFileSync(join(layers.workspace, "d/x"), "utf8")).toBe("x")
    const kept = foreign[0]?.kept ?? ""
    expect(
      readdirSync(kept)
        .filter((slot) => !slot.startsWith("n"))
        .some((slot) => readSafe(join(kept, slot)) === "a"),
    ).toBe(true)
    expect(await recover(layers)).toEqual({ finished: 0, undone: 0, foreign: [], malformed: [] })
  })

  it("leaves a new folder alone that another program added to after the crash", async () => {
    using layers = new PlainLayers(files)
    await crashed(layers)
    appendFileSync(join(layers.workspace, "new/deep/theirs"), "theirs")
    expect((await recover(layers)).foreign.map(({ path }) => path)).toEqual(["new"])
    expect(readFileSync(join(layers.workspace, "new/deep/theirs"), "utf8")).toBe("theirs")
  })

  it("does not bring back what another program removed after the crash", async () => {
    using layers = new PlainLayers(files)
    await crashed(layers)
    rmSync(join(layers.workspace, "d"), { recursive: true })
    const { foreign } = await recover(layers)
    expect(foreign.map(({ path }) => path)).toEqual(["d/x"])
    expect(existsSync(join(layers.workspace, "d"))).toBe(false)
  })

  it("does not touch the transactions of another workspace", async () => {
    using layers = new PlainLayers(files)
    await crashed(layers)
    const other = join(layers.base, "other")
    mkdirSync(other)
    expect(await recoverWorkspace({ workspace: other, txRoot: layers.txRoot })).toEqual({
      finished: 0,
      undone: 0,
      foreign: [],
      malformed: [],
    })
    expect((await recover(layers)).undone).toBe(1)
  })
})

const readSafe = (path: string): string => {
  try {
    return readFileSync(path, "utf8")
  } catch {
    return ""
  }
}

describe("two commits to one workspace", () => {
  it("both land when they touch different paths", async () => {
    using layers = new PlainLayers(files)
    const [one, two] = [layers.begin({ a: "1", "d/x": "1" }), layers.begin({ b: "2", "d/n": "2" })]
    expect(await Promise.all([one(), two()])).toEqual([{ ok: true }, { ok: true }])
  })

  it("never both land on the same path", async () => {
    using layers = new PlainLayers(files)
    const commits = ["1", "2", "3"].map((content) => layers.begin({ a: content, "d/x": content }))
    const results = await Promise.all(commits.map((commit) => commit()))
    expect(results.filter((result) => result.ok)).toHaveLength(1)
    expect(results.filter((result) => !result.ok && result.reason === "conflict")).toHaveLength(2)
    expect(readFileSync(join(layers.workspace, "a"), "utf8")).toBe(readFileSync(join(layers.workspace, "d/x"), "utf8"))
  })
})

describe("a commit of chosen paths", () => {
  it("writes those, with the folders they need, and nothing else", async () => {
    using layers = new PlainLayers(files)
    const commit = layers.begin({ a: "A", b: "B", "new/deep/er": "1", "new/skip": "2", "other/z": "3" })
    expect(await commit({ only: (path) => path === "b" || path.startsWith("new/deep") })).toEqual({ ok: true })
    expect(listTree(layers.workspace).map((line) => line.split(" ")[0])).toEqual([
      "a",
      "b",
      "d",
      "d/x",
      "d/y",
      "new",
      "new/deep",
      "new/deep/er",
    ])
    expect(readFileSync(join(layers.workspace, "a"), "utf8")).toBe("a")
    expect(readFileSync(join(layers.workspace, "b"), "utf8")).toBe("B")
  })
})

describe("extended attributes", () => {
  it("are carried with new content, and alone are an effect of their own", async () => {
    using layers = new PlainLayers(files)
    lsetxattr(join(layers.workspace, "b"), "user.gone", Buffer.from("old"))
    const commit = layers.begin({ a: "A", b: "b" })
    lsetxattr(join(layers.base, "upper-0/a"), "user.origin", Buffer.from("here"))
    lsetxattr(join(layers.base, "upper-0/b"), "user.added", Buffer.from("too"))
    expect(await commit()).toEqual({ ok: true })
    const tree = listTree(layers.workspace)
    expect(tree.find((line) => line.startsWith("a "))).toContain("user.origin=68657265")
    expect(tree.find((line) => line.startsWith("b "))).toContain("user.added=746f6f")
    expect(tree.find((line) => line.startsWith("b "))).not.toContain("user.gone")
  })
  it.each(["security.overlay.opaque", "security.made.up"])(
    "of the system's own are neither an effect nor carried: %s",
    async (name) => {
      using layers = new PlainLayers(files)
      const commit = layers.begin({ a: "A", b: "b", "d/x": "1", "new/deep": "2" })
      const upper = join(layers.base, "upper-0")
      try {
        // As root; on Debian 12's kernel as anybody.
        for (const path of ["a", "b", "d", "new", "new/deep"]) lsetxattr(join(upper, path), name, Buffer.from("y"))
      } catch (error) {
        if (errorCode(error) !== "EPERM" && errorCode(error) !== "EOPNOTSUPP") throw error
        return
      }
      const { effects } = await readWriteSet({ lower: layers.workspace, upper, xattrPrefix: "user" })
      expect(effects.filter(({ kind }) => kind === "xattr")).toEqual([])
      expect(await commit()).toEqual({ ok: true })
      const carried = ["", "a", "b", "d", "d/x", "d/y", "new", "new/deep"].filter((path) =>
        llistxattr(join(layers.workspace, path)).includes(name),
      )
      expect(carried).toEqual([])
      expect(readFileSync(join(layers.workspace, "new/deep"), "utf8")).toBe("2")
    },
  )
  it("are put back when the commit fails", async () => {
    using layers = new PlainLayers(files)
    lsetxattr(join(layers.workspace, "b"), "user.gone", Buffer.from("old"))
    const was = listTree(layers.workspace)
    const commit = layers.begin({ a: "A", b: "b" })
    lsetxattr(join(layers.base, "upper-0/b"), "user.added", Buffer.from("too"))
    const result = await commit({
      failpoint: (name) => {
        if (name === "synced") throw new Error("EIO")
      },
    })
    expect(result.ok).toBe(false)
    expect(listTree(layers.workspace)).toEqual(was)
  })
})
