/** A receipt names what ran by its content, and where it was let through to. */
import { createHash } from "node:crypto"
import { appendFileSync, cpSync, readFileSync, rmSync, truncateSync, writeFileSync } from "node:fs"
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { readReceipts } from "../../src/host/receipts/verify.ts"
import { fixtureTools, openFolder, openWorld, type World } from "./host-world.ts"

const sha256 = (file: string): string => `sha256:${createHash("sha256").update(readFileSync(file)).digest("hex")}`

interface Recorded {
  readonly program: {
    readonly path: string
    readonly digest: string
    readonly bundles?: readonly { readonly digest: string; readonly files: number; readonly unread?: number }[]
    readonly may_start?: readonly { readonly name: string; readonly digest: string }[]
  }
  readonly reached?: readonly { readonly target: string; readonly count: number; readonly bytes_in: number }[]
}
const lastOf = ({ data }: World): Recorded => readReceipts(data).at(-1)?.metadata as unknown as Recorded

describe("the receipt of a vendored program", () => {
  let tools: string
  beforeAll(() => {
    tools = join(openFolder(), "tools")
    cpSync(fixtureTools, tools, { recursive: true })
    writeFileSync(join(tools, "actor", "library.pm"), "1;\n")
  })
  afterAll(() => rmSync(join(tools, ".."), { recursive: true, force: true }))

  it("changes with the program and with any file that came with it, and with nothing else", async () => {
    await using world = await openWorld("", { manifests: [tools] })
    const call = async (): Promise<Recorded> => {
      expect(await world.call("fixture.act", { verb: "print", args: ["1"] })).toMatchObject({ ok: true })
      return lastOf(world)
    }
    const first = await call()
    expect(first.program.digest).toBe(sha256(join(tools, "actor/act.pl")))
    expect(first.program.may_start).toEqual([
      expect.objectContaining({ name: "perl", digest: sha256("/usr/bin/perl") }),
    ])
    expect(await call()).toMatchObject({ program: first.program })
    appendFileSync(join(tools, "actor/library.pm"), "# changed\n")
    const second = await call()
    expect(second.program.digest).toBe(first.program.digest)
    expect(second.program.bundles?.[0]?.digest).not.toBe(first.program.bundles?.[0]?.digest)
    appendFileSync(join(tools, "actor/act.pl"), "\n# changed\n")
    const third = await call()
    expect(third.program.digest).toBe(sha256(join(tools, "actor/act.pl")))
    expect(third.program.digest).not.toBe(second.program.digest)
  })
})

describe("a driver's folder with a file too large to read", () => {
  it("holds no call up: the file is recorded by its size, and a change of it still shows", async () => {
    const tools = join(openFolder(), "tools")
    cpSync(fixtureTools, tools, { recursive: true })
    const large = join(tools, "actor", "model.bin")
    writeFileSync(large, "")
    truncateSync(large, 4 * 2 ** 40)
    await using world = await openWorld("", { manifests: [tools] })
    const call = async (): Promise<Recorded> => {
      expect(await world.call("fixture.act", { verb: "print", args: ["1"] })).toMatchObject({ ok: true })
      return lastOf(world)
    }
    const first = await call()
    expect(first.program.digest).toBe(sha256(join(tools, "actor/act.pl")))
    truncateSync(large, 3 * 2 ** 40)
    const second = await call()
    expect(second.program.bundles?.[0]).toMatchObject({ digest: expect.stringMatching(/^sha256:/), unread: 1 })
    expect(second.program.bundles?.[0]?.digest).not.toBe(first.program.bundles?.[0]?.digest)
    rmSync(join(tools, ".."), { recursive: true, force: true })
  })
})

describe("the receipt of a call with a network", () => {
  it("names the declared hosts that were reached, with port, count and bytes each way, and no other", async () => {
    const server = createServer((_, response) => response.end("s".repeat(50_000)))
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
    const { port } = server.address() as AddressInfo
    try {
      await using world = await openWorld(`egress: { services: { service.test: "127.0.0.1:${port}" } }\n`)
      await world.call("fixture.dial", { how: "proxy", host: "service.test", port: 80 })
      expect(lastOf(world).reached).toEqual([
        {
          target: "service.test:80",
          count: expect.any(Number),
          bytes_out: expect.any(Number),
          bytes_in: expect.any(Number),
        },
      ])
      // The body, and a head of some hundred bytes.
      expect(lastOf(world).reached?.[0]?.bytes_in).toBeGreaterThan(50_000)
      expect(lastOf(world).reached?.[0]?.bytes_in).toBeLessThan(51_000)
      await world.call("fixture.dial", { how: "proxy", host: "evil.test", port: 80 })
      expect(lastOf(world).reached).toBeUndefined()
    } finally {
      await new Promise((resolve) => server.close(resolve))
    }
  })
})
