/** A call that runs no program: what it is handed, how it ends, and that its dials go a sandbox's way. */
import { rmSync } from "node:fs"
import { afterEach, describe, expect, it } from "vitest"
import { serveEgress } from "../../../../src/host/assemble/egress.ts"
import { attempt } from "../../../../src/host/call/running/attempt.ts"
import type { Desk, HostedCommand } from "../../../../src/host/drivers/kind.ts"
import type { Failure, Success } from "../../../../src/host/failure.ts"
import { egressBudgets } from "../../../../src/host/limits.ts"
import type { EventBody } from "../../../../src/host/events.ts"
import type { Denial } from "../../../../src/sandbox/backend.ts"
import { Secret } from "../../../../src/host/secrets/secret.ts"
import { echo, startUpstream, until } from "../../../egress-proxy/harness.ts"
import { egress, type Place, sealedOf, value, worldOf } from "../values.ts"

const made: Place[] = []
afterEach(() => {
  for (const { folder } of made.splice(0)) rmSync(folder, { recursive: true, force: true })
})

interface Scene {
  readonly act: (desk: Desk) => Promise<Success | Failure>
  readonly port?: number
  readonly wallMs?: number
  readonly cancel?: AbortController
  readonly earlier?: readonly Denial[]
  readonly secret?: string
}
const good: Success = { ok: true, value: "done", notes: [] }

const run = async ({ act, port, wallMs = 30_000, cancel = new AbortController(), earlier = [], secret }: Scene) => {
  const place = worldOf({ core: { egressProxy: serveEgress } })
  made.push(place)
  const told: EventBody[] = []
  const command: HostedCommand = { run: "hosted", shown: ["x"], act }
  const { profile, ...sealed } = value(await sealedOf(place))
  const { executables: _none, ...hosted } = profile
  const policy = {
    entries: egress("api.test:443"),
    services: { "api.test": { address: "127.0.0.1", port: port ?? 1 } },
    private: [],
    budgets: egressBudgets,
    readOnlyHttp: "off" as const,
    substitutions: [],
  }
  await using scope = new AsyncDisposableStack()
  const made_ = await attempt(
    place.core,
    {
      ...sealed,
      profile: { ...hosted, network: port === undefined ? "none" : { proxyPort: 1, transparentPorts: [], dns: true } },
      ...(port === undefined ? {} : { egress: policy }),
      ...(secret === undefined
        ? {}
        : { secrets: [{ name: "KEY", slug: "key", bound: true, grantedBy: "scope", value: new Secret(secret) }] }),
      command,
      signal: cancel.signal,
      tell: (event) => told.push(event),
    },
    { wallMs, earlier, scope },
  )
  const { exited, ...rest } = value(made_)
  return { ...rest, exited, ending: exited.ending, told }
}

describe("a call without a program", () => {
  it("answers, leaves nothing to judge, and has nothing to hold", async () => {
    const { outcome, ending, exited, facts, told } = await run({
      act: async (desk) => {
        desk.note({ status: 200 })
        desk.tell({ type: "progress", value: 1 })
        return good
      },
    })
    expect([outcome, ending, facts]).toEqual([good, { by: "answer" }, { status: 200 }])
    expect(exited.writes.effects).toEqual([])
    expect(told).toEqual([{ type: "progress", value: 1 }])
    expect(await exited.commit()).toEqual({ ok: true })
    expect(await exited.hold({ at: "/nowhere", bytes: 1 })).toMatchObject({ ok: false })
  })

  it("tells no secret of its call, whatever a service sends back of it", async () => {
    const act = async (desk: Desk): Promise<Success> => {
      desk.tell({ type: "progress", value: { message: "you are bearer-1234" } })
      return { ...good, value: "bearer-1234" }
    }
    const { outcome, told } = await run({ act, secret: "bearer-1234" })
    expect(outcome).toMatchObject({ value: "******" })
    expect(told).toEqual([{ type: "progress", value: { message: "you are ******" } }])
  })
  it("reaches what is declared, and that is counted", async () => {
    await using upstream = await startUpstream(echo)
    const { outcome, reached, denied } = await run({
      port: upstream.port,
      act: async ({ outlet }) => {
        const dialled = await outlet.connect({ host: "api.test", port: 443 })
        if (!dialled.ok) throw new Error(dialled.verdict.reason)
        dialled.connection.destroy()
        return good
      },
    })
    expect([outcome, reached, denied]).toEqual([
      good,
      [{ target: "api.test:443", count: 1, bytesOut: 0, bytesIn: 0 }],
      [],
    ])
  })

  it("has what it was denied in its account, with what earlier attempts were", async () => {
    const earlier = [{ layer: "egress", reason: "host_not_allowed", target: "evil.test:443", count: 2 }] as const
    const { denied } = await run({
      port: 1,
      earlier,
      act: async ({ outlet }) => {
        await outlet.connect({ host: "evil.test", port: 443 })
        return good
      },
    })
    expect(denied).toEqual([{ ...earlier[0], count: 3 }])
  })

  it("without a network has every dial refused and on record", async () => {
    const { denied } = await run({
      act: async ({ outlet }) => {
        expect(await outlet.connect({ host: "api.test", port: 443 })).toMatchObject({ ok: false })
        return good
      },
    })
    expect(denied).toMatchObject([{ reason: "host_not_allowed", target: "api.test:443" }])
  })

  it("tells of a declared host that could not be reached", async () => {
    const { outcome } = await run({
      port: 1,
      act: async ({ outlet }) => {
        await outlet.connect({ host: "api.test", port: 443 })
        return { ok: false, code: "upstream_error", message: "no", details: {} }
      },
    })
    expect(outcome).toMatchObject({ details: { unreachable: [{ reason: "connect_failed" }] } })
  })

  it("is over when it is cancelled, and closes its desk: what stands is cut, and nothing more is dialled", async () => {
    await using upstream = await startUpstream(echo)
    const cancel = new AbortController()
    let late: Promise<unknown> | undefined
    const { outcome, ending } = await run({
      port: upstream.port,
      cancel,
      act: ({ outlet, signal }) =>
        new Promise((resolve) => {
          void outlet.connect({ host: "api.test", port: 443 }).then(() => cancel.abort())
          signal.addEventListener("abort", () => {
            late = outlet.connect({ host: "api.test", port: 443 })
            resolve(good)
          })
        }),
    })
    expect(outcome).toMatchObject({ ok: false, code: "cancelled", details: { commit: "unknown" } })
    expect(ending).toEqual({ by: "cancelled" })
    expect(await late).toMatchObject({ ok: false, verdict: { reason: "closing" } })
    await until(() => upstream.sockets.size === 0, "the connection to be cut")
  })

  it("is over at its time although its code waits for what never comes", async () => {
    const { outcome, ending } = await run({ wallMs: 20, act: () => new Promise(() => undefined) })
    expect(outcome).toMatchObject({ ok: false, code: "timeout" })
    expect(ending).toEqual({ by: "limit", limit: "wall" })
  })

  it("that throws is a fault of the host, and what was thrown is not repeated", async () => {
    const { outcome } = await run({ act: () => Promise.reject(new Error("Bearer s3cret")) })
    expect(outcome).toMatchObject({ ok: false, code: "internal" })
    expect(JSON.stringify(outcome)).not.toContain("s3cret")
  })
})
