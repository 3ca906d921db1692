/** Clients of sdk drivers that are made with secrets: what the service gets, what the module sees, what is told. */
import { createHash } from "node:crypto"
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { join } from "node:path"
import { expect, it } from "vitest"
import { readReceipts } from "../../src/host/index.ts"
import { openWorld } from "./host-world.ts"

const folder = join(import.meta.dirname, "../../fixtures/sdk-secrets")
const canary = "tok_live-77ab01cd45"

it("a client is made with a placeholder where the secret is put in at the proxy, which sends it nowhere in the clear", async () => {
  const asked: string[] = []
  const server = createServer((request, response) => {
    asked.push(JSON.stringify(request.headers))
    response.end()
  })
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  const { port } = server.address() as AddressInfo
  try {
    const config = `manifests: ["${folder}"]\negress: { services: { declared.test: "127.0.0.1:${port}" } }\n`
    await using world = await openWorld(config, { manifests: [] })
    const ask = (path: string) => world.call("sdk.ask", { path }, { driver: "sdk-client" })
    expect(await ask("")).toMatchObject({ ok: false, error: { details: { reason: "auth_required" } } })
    await world.host.secrets.set("sdk-key", canary, { user: "alice" })
    expect(await ask("")).toMatchObject({ ok: true, value: { given: "Bearer $$SECRET[SDK_KEY]$$" } })
    const envelope = await ask("/")
    expect(envelope).toMatchObject({ ok: false, error: { code: "secret_misuse" } })
    expect(asked.filter((headers) => headers.includes(canary) || headers.includes("SECRET["))).toEqual([])
    expect(JSON.stringify([envelope, readReceipts(world.data, { call: envelope.call })])).not.toContain(canary)
  } finally {
    server.close()
  }
})

it("an argument is made with the value where the secret goes by the environment, and nobody else hears of it", async () => {
  await using world = await openWorld(`manifests: ["${folder}"]\n`, { manifests: [] })
  await world.host.secrets.set("keyed-token", canary, { user: "alice" })
  const envelope = await world.call("sdk.ask", { path: "/x" }, { driver: "sdk-keyed" })
  const given = createHash("sha256").update(`<${canary}>`).digest("hex")
  expect(envelope.ok ? envelope.value : envelope.error).toEqual({ status: 2, given })
  expect(JSON.stringify(readReceipts(world.data, { call: envelope.call }))).not.toContain(canary)
})
