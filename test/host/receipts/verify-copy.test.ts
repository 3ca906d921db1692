/** The evidence taken along: verified by the command and by openssl, from files that nobody may write. */
import { execFile } from "node:child_process"
import { chmodSync, cpSync, mkdtempSync, readdirSync, readFileSync, renameSync, statSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { promisify } from "node:util"
import { execa } from "execa"
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest"
import { openAuditLog } from "../../../src/host/receipts/log.ts"
import { readReceipts } from "../../../src/host/receipts/verify.ts"
import { caisson, launcher } from "../../cli/run-caisson.ts"
import { asUser } from "../../support/other-user.ts"
import { removeFolder } from "../../support/remove-folder.ts"

const documented = (): string => {
  const text = readFileSync(join(import.meta.dirname, "../../../docs/receipts.md"), "utf8")
  const [, after = ""] = text.split("### With openssl alone")
  const [, script = ""] = /```sh\n([\s\S]*?)```/.exec(after) ?? []
  return script
}
const allow = (folder: string, files: number, folders: number): void => {
  for (const name of [".", ...readdirSync(folder, { recursive: true, encoding: "utf8" })])
    chmodSync(join(folder, name), statSync(join(folder, name)).isDirectory() ? folders : files)
}

describe("a copy of the evidence", () => {
  let room: string
  let data: string
  let copy: string
  beforeAll(async () => {
    room = mkdtempSync(join(tmpdir(), "caisson-copy-"))
    chmodSync(room, 0o755)
    data = join(room, "data")
    copy = join(room, "copy")
    await using log = openAuditLog(data)
    for (const call of ["a", "b", "é 😀"])
      await log.append({
        actor: { id: "alice" },
        action: "tool.invoked",
        subject: { kind: "tool", ref: "t@1" },
        metadata: { call },
      })
  })
  afterAll(() => removeFolder(room))
  beforeEach(() => {
    removeFolder(copy)
    cpSync(join(data, "audit"), join(copy, "audit"), { recursive: true })
    allow(copy, 0o444, 0o555)
  })
  const head = (): string => join(copy, "audit", "head-pointer.json")
  const byOpenssl = async (): Promise<{ readonly ok: boolean; readonly said: string }> => {
    const script = `set -euo pipefail\n${documented()}`
    const options = { cwd: join(copy, "audit"), env: { ...process.env, TMPDIR: room } }
    return promisify(execFile)("bash", ["-c", script], options).then(
      ({ stdout }) => ({ ok: true, said: stdout }),
      (error: { stdout?: string; stderr?: string }) => ({ ok: false, said: `${error.stdout}${error.stderr}` }),
    )
  }

  it("verifies with openssl by the commands that the documents give, and not once its head or signature was changed", async () => {
    const [last] = readReceipts(data).slice(-1)
    expect(await byOpenssl()).toEqual({
      ok: true,
      said: `Signature Verified Successfully\n${last?.hash}\n${last?.hash}\n`,
    })
    const text = readFileSync(head(), "utf8")
    for (const changed of [
      text.replace('"seq":2', '"seq":1'),
      text.replace(/"value":"../, '"value":"AA'),
      text.replace(/"hash":"./, (found) => `"hash":"${found.endsWith("0") ? "1" : "0"}`),
    ]) {
      expect(changed).not.toBe(text)
      chmodSync(head(), 0o644)
      writeFileSync(head(), changed)
      expect(await byOpenssl()).toMatchObject({
        ok: false,
        said: expect.stringContaining("Signature Verification Failure"),
      })
    }
  })

  it("verifies where nothing of it may be written, for a user whose it is not, and makes nothing", async () => {
    const before = readdirSync(copy, { recursive: true }).sort()
    for (const folder of [copy, join(copy, "audit")]) {
      const [program, ...words] = asUser({ uid: 65_534, gid: 65_534 }, [process.execPath, launcher, "verify", folder])
      const told = await execa(program, words, {
        reject: false,
        cwd: "/",
        env: { HOME: "/nonexistent" },
      })
      expect([told.exitCode, told.stderr]).toEqual([0, ""])
      expect(JSON.parse(told.stdout)).toMatchObject({ ok: true, entries: 3 })
    }
    expect(readdirSync(copy, { recursive: true }).sort()).toEqual(before)
  })

  it("takes the key as openssl has it, refuses another's, and finds a chain that is gone, cut or misnamed", async () => {
    expect((await byOpenssl()).ok).toBe(true)
    const [made] = readdirSync(room).filter((name) => name.startsWith("tmp."))
    const key = join(room, made ?? "", "key.pem")
    const verify = async (...args: readonly string[]): Promise<number | undefined> =>
      (await caisson(["verify", ...args])).code
    expect(await verify(copy, "--key", key)).toBe(0)
    const other = mkdtempSync(join(room, "other-"))
    await using log = openAuditLog(other)
    await log.append({ actor: { id: "alice" }, action: "tool.invoked", subject: { kind: "tool", ref: "t@1" } })
    expect(await verify(other)).toBe(0)
    expect(await verify(other, "--key", key)).toBe(3)
    expect(await verify(copy, "--head", `sha256:${"0".repeat(64)}`)).toBe(3)
    allow(copy, 0o644, 0o755)
    renameSync(join(copy, "audit"), join(copy, "evidence"))
    expect(await verify(join(copy, "evidence"))).toBe(2)
    expect(await verify(copy)).toBe(3)
    renameSync(join(copy, "evidence"), join(copy, "audit"))
    const file = join(copy, "audit", "audit-log.jsonl")
    writeFileSync(file, readFileSync(file, "utf8").split("\n").slice(0, 2).join("\n"))
    expect(await verify(copy)).toBe(3)
    writeFileSync(file, "")
    expect(await verify(copy)).toBe(3)
  })
})
