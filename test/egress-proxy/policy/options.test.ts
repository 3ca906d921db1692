/** What users and operators write: refused with the field and the corrected spelling. */
import { spawnSync } from "node:child_process"
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { describe, expect, it } from "vitest"
import { createEgressProxy } from "../../../src/egress-proxy/index.ts"
import { listenAddress, type PolicyInput, policyFrom } from "../../../src/egress-proxy/policy/options.ts"
import { compilePolicy, PolicyError } from "../../../src/egress-proxy/policy/compile.ts"

const message = (input: PolicyInput): string => {
  try {
    compilePolicy(policyFrom(input))
    return "accepted"
  } catch (error) {
    return error instanceof PolicyError ? error.message : `not a PolicyError: ${String(error)}`
  }
}

describe("the policy of a proxy", () => {
  it("row 20: refuses upper case and trailing dots with the corrected spelling", () => {
    expect(message({ egress: ["API.good.test:443"] })).toContain('write "api.good.test:443"')
    expect(message({ egress: ["api.good.test.:443"] })).toContain('write "api.good.test:443"')
  })

  it("row 21: refuses every wildcard but a leading one, each with its own message", () => {
    const messages = ["*", "*.", "*.com", "*good.test", "api.*.test", "*.0.0.1"].map((entry) =>
      message({ egress: [entry] }),
    )
    expect(messages).not.toContain("accepted")
    expect(new Set(messages).size).toBe(messages.length)
  })

  it("refuses services that are no address and names that are not canonical", () => {
    expect(message({ egress: [], services: { "db.test": "localhost:5432" } })).toContain("egress.services")
    expect(message({ egress: [], services: { "db.test": "127.0.0.1" } })).toContain("egress.services")
    expect(message({ egress: [], services: { "DB.test": "127.0.0.1:5432" } })).toContain("canonical")
    expect(message({ egress: [], services: { "db.test": { address: "::1", port: 5432 } } })).toBe("accepted")
    expect(message({ egress: [], services: { "db.test": { address: "::1", port: 0 } } })).toContain("egress.services")
  })

  it("grants private and shared ranges only", () => {
    expect(message({ egress: [], private: ["10.0.0.0/8", "fd00::/8", "100.64.0.0/10"] })).toBe("accepted")
    for (const range of ["127.0.0.0/8", "169.254.0.0/16", "0.0.0.0/0", "93.184.216.0/24", "::/0", "10.0.0.1/8"])
      expect(message({ egress: [], private: [range] }), range).toContain(range)
  })

  it("refuses unknown and negative budgets", () => {
    expect(message({ egress: [], budgets: { bytesOut: -1 } })).toContain("budgets.bytesOut")
    expect(message({ egress: [], budgets: { byteOut: 1 } as object })).toContain('"byteOut"')
  })

  it("refuses a secret that could break out of a header without showing it", () => {
    const refused = message({
      egress: ["api.test"],
      substitutions: [{ placeholder: "$$SECRET[A]$$", value: "s3cr\r\net", hosts: ["api.test"] }],
    })
    expect(refused).toContain("substitutions")
    expect(refused).not.toContain("s3cr")
  })
})

describe("where a proxy listens", () => {
  it("reads every spelling of an address", () => {
    expect(listenAddress("127.0.0.1:0")).toEqual({ host: "127.0.0.1", port: 0 })
    expect(listenAddress("[::1]:8080")).toEqual({ host: "::1", port: 8080 })
    expect(listenAddress(3128)).toEqual({ host: "127.0.0.1", port: 3128 })
    expect(listenAddress("3128")).toEqual({ host: "127.0.0.1", port: 3128 })
    expect(listenAddress({ port: 1 })).toEqual({ host: "127.0.0.1", port: 1 })
    expect(listenAddress("unix:/run/p.sock")).toEqual({ path: "/run/p.sock" })
    expect(listenAddress({ path: "/run/p.sock" })).toEqual({ path: "/run/p.sock" })
    for (const wrong of ["unix:", "host", "127.0.0.1:99999", "a:b:1"])
      expect(() => listenAddress(wrong), wrong).toThrow(PolicyError)
  })

  it("listens on nothing unless told to", async () => {
    await using proxy = await createEgressProxy({ egress: ["api.good.test"] })
    expect([proxy.address, proxy.port, proxy.url]).toEqual([undefined, undefined, undefined])
  })

  it("rejects with the reason when the address is taken", async () => {
    await using first = await createEgressProxy({ egress: [], listen: "127.0.0.1:0" })
    await expect(createEgressProxy({ egress: [], listen: first.address ?? "" })).rejects.toMatchObject({
      code: "EADDRINUSE",
    })
  })

  it("takes over a Unix socket that a killed process left, and nothing that is in use or another file", async () => {
    const folder = mkdtempSync(join(tmpdir(), "caisson-listen-"))
    try {
      const left = join(folder, "left.sock")
      const leave = `require("node:net").createServer().listen(${JSON.stringify(left)}, () => process.kill(process.pid, "SIGKILL"))`
      expect(spawnSync(process.execPath, ["-e", leave]).signal).toBe("SIGKILL")
      expect(existsSync(left)).toBe(true)
      await using proxy = await createEgressProxy({ egress: [], listen: `unix:${left}` })
      expect(proxy.address).toBe(`unix:${left}`)
      await expect(createEgressProxy({ egress: [], listen: `unix:${left}` })).rejects.toMatchObject({
        code: "EADDRINUSE",
      })
      const file = join(folder, "notes.txt")
      writeFileSync(file, "keep me")
      await expect(createEgressProxy({ egress: [], listen: `unix:${file}` })).rejects.toMatchObject({
        code: "EADDRINUSE",
      })
      expect(readFileSync(file, "utf8")).toBe("keep me")
    } finally {
      rmSync(folder, { recursive: true, force: true })
    }
  })

  it("says what is wrong with a list of entries that is none", async () => {
    await expect(createEgressProxy({ egress: undefined as never })).rejects.toThrow(PolicyError)
  })
})
