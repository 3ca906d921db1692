import { describe, expect, test } from "vitest"
import { reasons } from "../../../../src/egress-proxy/policy/reasons.ts"
import { blameDenial, tellDenials } from "../../../../src/host/call/judging/denials.ts"
import type { Failure } from "../../../../src/host/failure.ts"
import type { Denial } from "../../../../src/sandbox/backend.ts"

const denial = (layer: Denial["layer"], reason: string, target = "api.bad.test:443"): Denial => ({
  layer,
  reason,
  target,
  count: 1,
})
const failure = (code: Failure["code"]): Failure => ({
  ok: false,
  code,
  message: "curl: (22) The requested URL returned error: 403",
  hint: "read the driver's documentation",
  details: { stderr: "403" },
})

describe("each denial of an envelope", () => {
  const denied = Object.entries(reasons)
    .filter(([, reason]) => reason.class !== "allow")
    .map(([code]) => denial("egress", code))
  const others = [
    denial("egress", "address_not_allowed", "192.0.2.1:22"),
    denial("egress", "attempts_unnamed"),
    denial("exec", "children_forbidden", "/usr/bin/find"),
    ...["wall", "memory", "pids", "cpu", "disk", "output"].map((name) => denial("limit", name, "5 of them")),
    denial("fs", "nobody knows this one"),
  ]
  test.each([...denied, ...others].map((one) => [one.reason, one] as const))("%s has a message", (_, one) => {
    const [told] = tellDenials([one])
    expect(told).toMatchObject(one)
    expect(told?.message).toMatch(/\S/)
  })

  test("names the host in the message and the line to write in the hint", () => {
    const [told] = tellDenials([denial("egress", "host_not_allowed")])
    expect(told?.message).toContain("api.bad.test:443")
    expect(told?.hint).toContain('"api.bad.test:443" to `network.egress`')
    const [odd] = tellDenials([denial("egress", "host_not_allowed", "api.bad.test:8443")])
    expect(odd?.hint).toContain('"api.bad.test:8443"')
  })
})

describe("a failure that came with a denial", () => {
  test.each(["curl:http_error", "upstream_error", "output_parse_failed", "output_invalid"] as const)(
    "%s says the denial first, with its fix, and keeps code and details",
    (code) => {
      const told = blameDenial(failure(code), [denial("egress", "host_not_allowed")])
      expect(told.message).toMatch(/^api\.bad\.test:443 is not in the driver's egress.*probably.*403$/)
      expect(told.hint).toContain("network.egress")
      expect(told).toMatchObject({
        code,
        details: { stderr: "403", probable_cause: { layer: "egress", target: "api.bad.test:443" } },
      })
    },
  )

  test("blames the last dial, not what came before it", () => {
    const told = blameDenial(failure("upstream_error"), [
      denial("egress", "host_not_allowed", "telemetry.test:443"),
      denial("egress", "host_not_allowed", "api.bad.test:443"),
      denial("limit", "pids", "4 processes"),
    ])
    expect(told.details["probable_cause"]).toMatchObject({ target: "api.bad.test:443" })
  })

  test.each(["timeout", "limit_exceeded", "undeclared_write", "internal", "cancelled"] as const)(
    "%s speaks for itself",
    (code) => {
      expect(blameDenial(failure(code), [denial("egress", "host_not_allowed")])).toEqual(failure(code))
    },
  )

  test("a declared host that could not be reached is told where nothing was denied", () => {
    const failed = {
      ...failure("curl:http_error"),
      details: { unreachable: [{ message: "good.test:443 refused", hint: "h" }] },
    }
    expect(blameDenial(failed, [])).toMatchObject({
      message: expect.stringMatching(/^good\.test:443 refused;/),
      hint: "h",
    })
  })

  test("without a denial nothing is blamed", () => {
    expect(blameDenial(failure("upstream_error"), [])).toEqual(failure("upstream_error"))
  })
})
