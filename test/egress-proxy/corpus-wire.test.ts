/** The corpus as raw bytes on the wire, against a real proxy with loopback upstreams. */
import { describe, expect, it } from "vitest"
import { egressCases } from "../corpus/egress-cases.ts"
import { faultsOnWire, runOnWire } from "../corpus/egress-runner.ts"

describe.concurrent("the egress corpus on the wire", () => {
  for (const one of egressCases) {
    it(`row ${one.row}: ${one.name} → ${one.reason}`, async () => {
      expect(faultsOnWire(one, await runOnWire(one))).toEqual([])
    })
  }
})
