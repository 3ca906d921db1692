import { rmSync } from "node:fs"
import { afterEach, describe, expect, it } from "vitest"
import {
  driverOf,
  implementationOf,
  type Place,
  routed,
  signedIn,
  toolOf,
  value,
  type World,
  worldOf,
} from "./values.ts"

const made: Place[] = []
const place = (world: World = {}): Place => {
  const one = worldOf(world)
  made.push(one)
  return one
}
afterEach(() => {
  for (const { folder } of made.splice(0)) rmSync(folder, { recursive: true, force: true })
})
const missing = async () => ({
  available: false as const,
  code: "tool_unavailable" as const,
  reason: "scribe is not in /usr/bin",
  fix: "apt install scribe",
})

describe("route", () => {
  it("chooses the driver and keeps its program and version", async () => {
    expect(value(await routed(place()))).toMatchObject({
      driver: { key: "scribe@2" },
      program: { name: "scribe" },
      programVersion: "2.0.0",
    })
  })

  it("carries why the program is not there and what to do", async () => {
    expect(await routed(place({ core: { availability: missing } }))).toMatchObject({
      code: "tool_unavailable",
      details: { route: [{ reason: expect.stringContaining("scribe is not in"), fix: "apt install scribe" }] },
    })
  })

  it("heeds the operator's tags and region", async () => {
    expect(
      await routed(
        place({ drivers: [driverOf({ policyTags: ["beta"] })], config: { policyTags: { allow: [], deny: ["beta"] } } }),
      ),
    ).toMatchObject({ ok: false })
    expect(await routed(place({ config: { region: "eu" } }))).toMatchObject({ ok: false })
    expect(
      (await routed(place({ drivers: [driverOf({ region: ["eu"], regionDeclared: true })], config: { region: "eu" } })))
        .ok,
    ).toBe(true)
  })

  it("refuses a pin that cannot serve", async () => {
    expect(await routed(place(), { driver: "other" })).toMatchObject({ code: "pinned_provider_unavailable" })
    expect((await routed(place(), { driver: "scribe" })).ok).toBe(true)
  })

  it("refuses an input that no driver takes", async () => {
    const drivers = [driverOf({ implements: [implementationOf({ dropInputs: ["file"] })] })]
    expect(await routed(place({ drivers }), { input: { text: "a", file: "b" } })).toMatchObject({
      code: "input_unsupported",
      details: { fields: ["file"] },
    })
  })
})

describe("sign-in", () => {
  it("needs nothing without an auth block", async () => {
    expect(value(await signedIn(place())).authState).toBe("not-needed")
  })

  it("asks for the login of a driver that has one, with its configuration", async () => {
    const drivers = [
      driverOf({
        auth: {
          state: { paths: ["~/.scribe"], env: [] },
          login: { cmd: "scribe login", interactive: false, requiresCallbackUrl: false, completesWhen: [] },
        },
      }),
    ]
    expect(await routed(place({ drivers }))).toMatchObject({
      code: "auth_required",
      details: { login: { cmd: "scribe login" } },
    })
  })

  it("asks for secrets of the environment that do not resolve, even if the operator's env has the name", async () => {
    const drivers = [driverOf({ auth: { state: { paths: [], env: ["SCRIBE_TOKEN"] } } })]
    expect(await routed(place({ drivers, config: { env: { SCRIBE_TOKEN: "x" } } }))).toMatchObject({
      code: "auth_required",
    })
  })

  it("counts a driver as signed in whose auth block needs nothing", async () => {
    const drivers = [driverOf({ auth: { state: { paths: ["~/.scribe"], env: [] } } })]
    expect(value(await signedIn(place({ drivers }))).authState).toBe("authed")
  })

  it("asks for set-up steps by name", async () => {
    expect(
      await routed(
        place({
          drivers: [driverOf({ setup: [{ id: "init", kind: "cmd", cmd: "x", timeoutMs: 1000, interactive: false }] })],
        }),
      ),
    ).toMatchObject({ code: "setup_required", details: { pending: ["init"] } })
  })

  it("asks for secrets that the contract requires", async () => {
    expect(await signedIn(place({ tool: toolOf({ requires: { secrets: ["key"], tools: [] } }) }))).toMatchObject({
      code: "auth_required",
      details: { secrets: ["key"] },
    })
  })
})
