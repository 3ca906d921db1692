import { lookup } from "node:dns/promises"
import { connect } from "node:net"
import { afterAll, describe, expect } from "vitest"
import { acquireEngine } from "../support/docker-engine.ts"
import { describeNeeding, testNeeding } from "../support/needing.ts"
import { programAt } from "../support/servers/packages.ts"
import { lastReceipt, openMethodsWorld } from "./methods-world.ts"

const engine = await acquireEngine()
afterAll(async () => {
  if (engine.ok) await engine[Symbol.asyncDispose]()
})

const HOST = "deb.debian.org"
const address = await lookup(HOST, { family: 4 }).catch(() => undefined)
const isReached = await new Promise<boolean>((resolve) => {
  if (address === undefined) return resolve(false)
  const socket = connect({ host: address.address, port: 80, timeout: 5000 })
  for (const event of ["error", "timeout"] as const) socket.once(event, () => resolve(socket.destroy() === undefined))
  socket.once("connect", () => {
    socket.destroy()
    resolve(true)
  })
})
const missing =
  programAt("apt-get") === undefined || !isReached ? `packages of apt need Debian and a way to ${HOST}` : undefined

const suite = (backend: "namespace" | "docker"): void => {
  testNeeding("jq comes by apt with the libraries it needs, and is called from its layer", missing, async () => {
    await using made = await openMethodsWorld({
      backend,
      // A mirror at an address that is nobody's is mapped on purpose.
      services: [`${HOST}: "${address?.address ?? ""}:80"`],
      install: "prefer: layer",
      config: engine.ok ? `docker: { engine: "unix://${engine.socket}" }` : "",
      drivers: () => [
        {
          id: "jq",
          install: "[{ method: apt, package: jq }]",
          range: ">=1",
          argv: '[-n, --arg, x, "${input.name}", "$x"]',
        },
      ],
    })
    const report = await made.world.host.install("jq")
    expect(report, JSON.stringify(report)).toMatchObject({ ok: true, layers: [{ source: "apt" }] })
    const layer = report.ok ? report.layers[0] : undefined
    expect(layer?.packages.map(({ name }) => name)).toEqual(expect.arrayContaining(["jq", "libonig5"]))
    expect(await made.world.call("fixture.jq", { name: "Ada" })).toMatchObject({ ok: true, value: '"Ada"\n' })
    expect(lastReceipt(made.world.data)).toContain(`"layer":"${layer?.digest}"`)
  })
}

describe("with the namespace backend", () => suite("namespace"))
describeNeeding("with the docker backend", engine.ok ? undefined : engine.reason, () => suite("docker"))
