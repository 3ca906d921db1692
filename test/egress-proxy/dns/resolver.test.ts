import { createSocket } from "node:dgram"
import { Resolver } from "node:dns/promises"
import { once } from "node:events"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { answer, parseQuery } from "../../../src/egress-proxy/dns/message.ts"
import { createSyntheticAddresses } from "../../../src/egress-proxy/dns/synthetic.ts"

const addresses = createSyntheticAddresses()
const responder = createSocket("udp4")
const resolver = new Resolver({ tries: 1, timeout: 5000 })

beforeAll(async () => {
  responder.on("message", (message, from) => {
    const parsed = parseQuery(message)
    const name = parsed.ok ? parsed.query.name : undefined
    const address = name?.endsWith(".good.test") ? addresses.addressFor(name) : undefined
    const outcome = address === undefined ? ({ kind: "undeclared" } as const) : ({ kind: "declared", address } as const)
    const reply = parsed.ok ? answer(parsed.query, outcome) : parsed.reply
    if (reply !== undefined) responder.send(reply, from.port, from.address)
  })
  responder.bind(0, "127.0.0.1")
  await once(responder, "listening")
  resolver.setServers([`127.0.0.1:${responder.address().port}`])
})
afterAll(() => {
  responder.close()
})

describe("a real resolver", () => {
  it("gets the address of a declared name, in any case", async () => {
    expect(await resolver.resolve4("DB.good.test")).toEqual(["198.18.0.2"])
    expect(addresses.nameFor("198.18.0.2")).toBe("db.good.test")
  })

  it("learns at once that a declared name has nothing else", async () => {
    await expect(resolver.resolve6("db.good.test")).rejects.toMatchObject({ code: "ENODATA" })
    await expect(resolver.resolveTxt("db.good.test")).rejects.toMatchObject({ code: "ENODATA" })
  })

  it("learns at once that an undeclared name does not exist", async () => {
    await expect(resolver.resolve4("evil.test")).rejects.toMatchObject({ code: "ENOTFOUND" })
    await expect(resolver.reverse("198.18.0.2")).rejects.toMatchObject({ code: "ENOTFOUND" })
  })
})
