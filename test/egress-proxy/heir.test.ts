/** Proxies for the same clients at different times: policy, budgets and record apart, authority and addresses shared. */
import { connect } from "node:net"
import { expect, it } from "vitest"
import { createEgressProxy, type EgressProxy, PolicyError } from "../../src/egress-proxy/index.ts"
import { publicAddress } from "../corpus/egress-cases.ts"
import { echo, startUpstream, type Upstream } from "./harness.ts"

const bound = { placeholder: "$$SECRET[TOKEN]$$", value: "value", hosts: ["api.good.test"] }
const policyOf = (upstream: Upstream, egress: readonly string[] = ["tcp://db.good.test:5432"]) => ({
  egress,
  budgets: { requests: 1 },
  resolve: () => [publicAddress],
  dial: () => connect(upstream.port, "127.0.0.1"),
})
const dialled = async (proxy: EgressProxy): Promise<string> => {
  const answer = await proxy.dial({ host: "db.good.test", port: 5432 })
  if (!answer.ok) return answer.verdict.reason
  answer.connection.destroy()
  return "reached"
}

it("an heir has a policy, budgets and a record of its own", async () => {
  await using upstream = await startUpstream(echo)
  await using first = await createEgressProxy(policyOf(upstream))
  expect([await dialled(first), await dialled(first)]).toEqual(["reached", "budget"])
  await using next = await first.heir(policyOf(upstream))
  expect(next.denials()).toEqual([])
  expect([await dialled(next), await dialled(next)]).toEqual(["reached", "budget"])
  await using shut = await next.heir(policyOf(upstream, []))
  expect(await dialled(shut)).toBe("host_not_allowed")
  expect([first, next, shut].map((proxy) => proxy.denials().map(({ reason }) => reason))).toEqual([
    ["budget"],
    ["budget"],
    ["host_not_allowed"],
  ])
})

it("an heir is trusted by what trusts the first one, which outlives it", async () => {
  await using upstream = await startUpstream(echo)
  const policy = { ...policyOf(upstream, ["api.good.test:443"]), substitutions: [bound] }
  await using first = await createEgressProxy(policy)
  const next = await first.heir(policy)
  expect(next.caPem).toBe(first.caPem)
  await next.close()
  await using last = await first.heir(policy)
  expect(last.caPem).toBe(first.caPem)
  await expect(
    first.heir({ ...policy, egress: ["b.good.test:443"], substitutions: [{ ...bound, hosts: ["b.good.test"] }] }),
  ).rejects.toThrow(PolicyError)
})
