/** `caisson approvals`, spawned for real. */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { DatabaseSync } from "node:sqlite"
import { afterEach, beforeEach, expect, test } from "vitest"
import { storeFile } from "../../src/data-folder/paths.ts"
import type { Envelope, HeldApproval, HeldApprovalDetail } from "../../src/host/types.ts"
import { caisson, type Ended, scratch } from "../cli/run-caisson.ts"

let room: ReturnType<typeof scratch>
let workspace: string
let env: Record<string, string>
beforeEach(() => {
  room = scratch()
  workspace = join(room.folder, "workspace")
  mkdirSync(workspace)
  env = { CAISSON_DATA: join(room.folder, "data") }
})
afterEach(() => room[Symbol.dispose]())

const run = (...args: readonly string[]): Promise<Ended> => caisson(args, { env, cwd: workspace })
const held = async (): Promise<string> => {
  const ended = await run("call", "file.write", "-i", '{"path": "a.txt", "content": "hello"}')
  expect(ended.code).toBe(4)
  return (JSON.parse(ended.stdout) as Envelope).call
}
const parsed = <T>({ stdout }: Ended): T => JSON.parse(stdout) as T

test("a call that nobody was there to approve is listed, shown and approved by commands of their own", {
  timeout: 240_000,
}, async () => {
  expect(await run("approvals")).toMatchObject({ code: 0, stdout: "[]\n" })
  const id = await held()
  expect(parsed<HeldApproval[]>(await run("approvals", "--json"))).toMatchObject([
    { id, tool: "file.write@1", changes: 1 },
  ])
  expect(parsed<HeldApprovalDetail>(await run("approvals", "show", id))).toMatchObject({
    id,
    intact: true,
    effects: [{ kind: "create", path: "a.txt", declared: true }],
  })
  expect(existsSync(join(workspace, "a.txt"))).toBe(false)
  const approved = await run("approvals", "approve", id)
  expect(approved.code).toBe(0)
  expect(parsed<Envelope>(approved)).toMatchObject({
    ok: true,
    call: id,
    effects: [{ path: "a.txt", committed: true }],
  })
  expect(readFileSync(join(workspace, "a.txt"), "utf8")).toBe("hello")
  const again = await run("approvals", "approve", id)
  expect(again.code).toBe(2)
  expect(parsed<Envelope>(again)).toMatchObject({ error: { code: "conflict" } })
  expect((await run("verify")).code).toBe(0)
})

test("a denied call is gone; a conflict, an unknown call and a wrong word end with their own codes", {
  timeout: 240_000,
}, async () => {
  const denied = await held()
  expect(await run("approvals", "deny", denied, "--json")).toMatchObject({ code: 0 })
  expect(parsed<HeldApproval[]>(await run("approvals"))).toEqual([])
  const id = await held()
  writeFileSync(join(workspace, "a.txt"), "mine")
  const ended = await run("approvals", "approve", id)
  expect(ended.code).toBe(2)
  expect(parsed<Envelope>(ended)).toMatchObject({ error: { code: "conflict", details: { paths: ["a.txt"] } } })
  expect(readFileSync(join(workspace, "a.txt"), "utf8")).toBe("mine")
  expect(await run("approvals", "show", id)).toMatchObject({ code: 2, stdout: "" })
  expect((await run("approvals", "approve", "nothing")).code).toBe(2)
  expect((await run("approvals", "maybe", id)).code).toBe(2)
  expect((await run("approvals", "approve")).code).toBe(2)
  const help = await run("approvals", "approve", "--help")
  expect(help.code).toBe(0)
  expect(help.stdout).toContain("approve [options] <id>")
})

test("a held call whose row is damaged is named with what to do, and the others are listed", {
  timeout: 240_000,
}, async () => {
  const [broken, whole] = [await held(), await held()]
  const db = new DatabaseSync(storeFile(env["CAISSON_DATA"] ?? ""))
  db.prepare("UPDATE held SET facts = '{' WHERE id = ?").run(broken)
  db.close()
  const listed = await run("approvals")
  expect(listed.code).toBe(0)
  expect(parsed<HeldApproval[]>(listed).map(({ id, damaged }) => ({ id, damaged }))).toEqual([
    { id: broken, damaged: true },
    { id: whole },
  ])
  expect(listed.stderr).toContain(`caisson approvals deny ${broken}`)
  expect(await run("approvals", "deny", broken, "--json")).toMatchObject({ code: 0 })
  expect(parsed<HeldApproval[]>(await run("approvals"))).toMatchObject([{ id: whole }])
})
