import { describe, expect, it } from "vitest"
import { expirySign, withSign } from "../../../src/host/drivers/expiry.ts"
import type { Failure } from "../../../src/host/failure.ts"
import type { AuthSpec, ExpiryDetector } from "../../../src/manifest/types.ts"

const state = { paths: [], env: [] }
const auth = (expiry: ExpiryDetector): AuthSpec => ({ state, expiry })
const exit = (code: number): AuthSpec => auth({ by: "exit_code", code })
const login = { interactive: false, requiresCallbackUrl: false, completesWhen: [] }

describe("a login that expired", () => {
  // biome-ignore format: a table reads by rows
  it.each([
    ["has no sign without auth", undefined, { exitCode: 4, status: 401 }, undefined],
    ["has the declared exit code for a sign", exit(4), { exitCode: 4 }, "expired"],
    ["has none at another code", exit(4), { exitCode: 1 }, undefined],
    ["is only perhaps one at exit code 1", exit(1), { exitCode: 1 }, "perhaps"],
    ["has a mapped auth_required for a sign", exit(9), { exitCode: 4, mapped: "auth_required" }, "expired"],
    ["has no sign of another kind's", auth({ by: "http_status", status: 4 }), { exitCode: 4 }, undefined],
    ["has the declared status for a sign", auth({ by: "http_status", status: 403 }), { status: 403 }, "expired"],
    ["has the declared exception for a sign", auth({ by: "exception", name: "Expired" }), { classes: ["Odd", "Expired", "Error"] }, "expired"],
    ["has none in another exception", auth({ by: "exception", name: "Expired" }), { classes: ["Error"] }, undefined],
    ["has the declared header for a sign", auth({ by: "header", name: "x-auth", value: "gone" }), { status: 200, header: (name: string) => (name === "x-auth" ? " gone " : undefined) }, "expired"],
    ["has none in another value of it", auth({ by: "header", name: "x-auth", value: "gone" }), { header: () => "there" }, undefined],
    ["is perhaps one at a 401 that its driver says nothing of", { state, login }, { status: 401 }, "perhaps"],
    ["is nothing at a 403 of which the driver says nothing", { state, login }, { status: 403 }, undefined],
    ["is nothing at a 401 where nobody could log in", { state }, { status: 401 }, undefined],
  ] as const)("%s", (_, spec, signs, sign) => {
    expect(expirySign(spec, signs)).toBe(sign)
  })

  it("is told as one only where that is certain", () => {
    const failure: Failure = { ok: false, code: "upstream_error", message: "no", details: {} }
    expect(withSign(failure, "expired", "gone")).toMatchObject({ code: "auth_required", message: "gone" })
    expect(withSign(failure, "perhaps", "gone")).toMatchObject({
      code: "upstream_error",
      message: "no",
      expiry: "perhaps",
    })
    expect(withSign(failure, undefined, "gone")).toBe(failure)
  })
})
