import { describe, expect, it } from "vitest"
import type { RegisteredDriver } from "../../../src/host/registry/types.ts"
import { resolve } from "../../../src/host/resolver/resolve.ts"
import type {
  AuthStatus,
  HealthStatus,
  ResolveInput,
  RouteCall,
  RoutePolicy,
} from "../../../src/host/resolver/types.ts"
import type { Availability } from "../../../src/host/types.ts"
import type { DriverKind, ToolContract } from "../../../src/manifest/types.ts"
import { driverOf, entryOf, registered, sketch, toolOf } from "./contracts.ts"

const auth = {
  state: { paths: [], env: ["API_KEY"] },
  login: { cmd: "x login", interactive: false, requiresCallbackUrl: false, completesWhen: [] },
}
const gone: Availability = {
  available: false,
  code: "tool_unavailable",
  reason: "`x` is not in /usr/bin",
  fix: "run `apt-get install x`",
}
const old: Availability = {
  available: false,
  code: "version_mismatch",
  reason: "version 1.0.0 is installed",
  fix: "upgrade",
}

const openai = sketch("openai-images-http", {
  cost: 4,
  entry: { dropInputs: ["seed", "negative_prompt"] },
  driver: { policyTags: ["third-party-llm", "us-data-residency"] },
})
const replicate = sketch("replicate-flux-http", {
  cost: 2.5,
  driver: { policyTags: ["third-party-llm", "us-data-residency"] },
})
const sdxl = sketch("host-sdxl-sdk", {
  kind: "sdk",
  cost: 0.5,
  driver: { region: ["self-hosted"], policyTags: ["self-hosted", "pii-safe", "no-third-party"] },
})
const mistral = sketch("mistral-image-eu-http", {
  cost: 3,
  driver: { region: ["EU", "eu-central-1"], policyTags: ["gdpr-compliant"], auth },
})

interface Case {
  readonly name: string
  readonly drivers: readonly RegisteredDriver[]
  readonly tool?: ToolContract
  readonly call?: Partial<RouteCall>
  readonly policy?: RoutePolicy
  readonly availability?: Record<string, Availability | undefined>
  readonly health?: Record<string, HealthStatus>
  readonly auth?: Record<string, AuthStatus>
  readonly now?: number
  /** the selected driver, or `code/reason` */
  readonly gives: string
  readonly row?: readonly [driver: string, phase: string, reason?: RegExp]
}

const inputOf = (each: Omit<Case, "name" | "gives">): ResolveInput => ({
  tool: each.tool ?? toolOf(),
  drivers: each.drivers,
  call: { input: { prompt: "a cat" }, ...each.call },
  policy: each.policy ?? {},
  availability: new Map(
    Object.entries({
      ...Object.fromEntries(each.drivers.map((driver) => [driver.key, { available: true }])),
      ...each.availability,
    }).filter((pair): pair is [string, Availability] => pair[1] !== undefined),
  ),
  health: new Map(Object.entries(each.health ?? {})),
  auth: new Map(Object.entries(each.auth ?? {})),
  ...(each.now === undefined ? {} : { now: each.now }),
})

const three = [openai, replicate, sdxl]
const failedAt = (at: number): HealthStatus => ({ ok: false, at, reason: "503" })
const minute = 60_000

// biome-ignore format: a table reads by rows
const showcase: readonly Case[] = [
  { name: "takes the cheapest when nothing is pinned", drivers: three, gives: "host-sdxl-sdk@1", row: ["openai-images-http@1", "rank", /costs 0\.5 a call, this one 4/] },
  { name: "skips a denied tag and takes the cheaper of the rest", drivers: three, policy: { tags: { deny: ["self-hosted"] } }, gives: "replicate-flux-http@1", row: ["host-sdxl-sdk@1", "policy", /denies its tag `self-hosted`/] },
  { name: "finds no route in a region that none declares", drivers: three, policy: { regions: ["EU"] }, gives: "no_route/no_route_in_region", row: ["openai-images-http@1", "policy", /region is `global`/] },
  { name: "lets a pin beat cost", drivers: three, call: { pin: "openai-images-http" }, gives: "openai-images-http@1", row: ["host-sdxl-sdk@1", "pin", /the call pins/] },
  { name: "skips a driver whose health check failed within five minutes", drivers: three, health: { "host-sdxl-sdk@1": failedAt(0) }, now: 4 * minute, gives: "replicate-flux-http@1", row: ["host-sdxl-sdk@1", "capability", /health check failed: 503/] },
  { name: "takes only the driver that carries an allowed tag", drivers: three, policy: { tags: { allow: ["pii-safe"] } }, gives: "host-sdxl-sdk@1", row: ["replicate-flux-http@1", "policy", /asks for one of the tags `pii-safe`/] },
  { name: "routes an EU call to the EU driver once it is logged in", drivers: [...three, mistral], policy: { regions: ["EU"] }, auth: { "mistral-image-eu-http@1": { state: "authed" } }, gives: "mistral-image-eu-http@1" },
  { name: "asks for the EU driver's login rather than leave the region", drivers: [...three, mistral], policy: { regions: ["EU"] }, gives: "auth_required/auth_required" },
  { name: "finds no route when the one EU driver is down, rather than leave the region", drivers: [...three, mistral], policy: { regions: ["EU"] }, availability: { "mistral-image-eu-http@1": gone }, gives: "no_route/no_route_in_region" },
  { name: "passes over a driver that does not take an input of the call", drivers: [openai, replicate], call: { input: { prompt: "x", seed: 1 } }, gives: "replicate-flux-http@1", row: ["openai-images-http@1", "candidates", /does not take `seed`/] },
]

const dropsSeed = sketch("narrow", { entry: { dropInputs: ["seed"] } })
const needsSeed = ((): RegisteredDriver => {
  const plain = sketch("needy", { cost: 0 })
  return {
    ...plain,
    bindings: plain.bindings.map((each) => ({
      ...each,
      needs: [{ root: "input" as const, keys: ["n"] }],
      implementation: { ...each.implementation, mapping: { n: { from: "seed" } } },
    })),
  }
})()
const cli = sketch("shell", { kind: "cli", cost: 0 })
// biome-ignore format: a table reads by rows
const candidates: readonly Case[] = [
  { name: "finds no route without drivers", drivers: [], gives: "no_route/no_candidates" },
  { name: "ignores drivers of other tools", drivers: [sketch("other", { entry: { tool: "image.edit" } })], gives: "no_route/no_candidates" },
  { name: "drops a driver bound to another major of the tool", drivers: [sketch("a", {}, toolOf({ version: "2.0.0", major: 2 }))], gives: "no_route/version_range", row: ["a@1", "candidates", /the contract is 1\.0\.0/] },
  { name: "drops a refused driver with the registry's reason", drivers: [sketch("a", { over: { refusal: { code: "manifest_invalid", reason: "bad mapping", fix: "mend it" } } })], gives: "no_route/manifest_invalid", row: ["a@1", "candidates", /bad mapping/] },
  { name: "drops an unusable driver", drivers: [sketch("a", { driver: { unusable: "no base_url" } })], gives: "no_route/tool_unavailable", row: ["a@1", "candidates", /no base_url/] },
  { name: "drops forbidden kinds", drivers: [cli, openai], tool: toolOf({ driverConstraints: { forbid: ["cli"], requireKind: [] } }), gives: "openai-images-http@1", row: ["shell@1", "candidates", /forbids drivers of kind cli/] },
  { name: "drops kinds that are not required", drivers: [openai, sdxl], tool: toolOf({ driverConstraints: { forbid: [], requireKind: ["http"] } }), gives: "openai-images-http@1", row: ["host-sdxl-sdk@1", "candidates", /kind http/] },
  { name: "lets forbid beat require", drivers: [cli], tool: toolOf({ driverConstraints: { forbid: ["cli"], requireKind: ["cli"] } }), gives: "no_route/kind_forbidden" },
  { name: "reports unsupported inputs when every driver falls for them", drivers: [openai, dropsSeed], call: { input: { prompt: "x", seed: 1 } }, gives: "input_unsupported/input_unsupported" },
  { name: "reports unsupported inputs of the pinned driver although another takes them", drivers: [openai, replicate], call: { input: { prompt: "x", seed: 1 }, pin: "openai-images-http" }, gives: "input_unsupported/input_unsupported" },
  { name: "does not blame inputs when another driver was only not installed", drivers: [dropsSeed, replicate], call: { input: { prompt: "x", seed: 1 } }, availability: { "replicate-flux-http@1": gone }, gives: "tool_unavailable/tool_unavailable" },
  { name: "judges only the inputs that the caller sent, not filled-in defaults", drivers: [dropsSeed], call: { input: { prompt: "x", seed: 1 }, sentKeys: ["prompt"] }, gives: "narrow@1" },
  { name: "uses a second entry of the driver that takes the input", drivers: [registered(driverOf("two", { implements: [entryOf({ dropInputs: ["seed"] }), entryOf({ costUnitsPerCall: 9 })] }))], call: { input: { prompt: "x", seed: 1 } }, gives: "two@1" },
  { name: "passes over a driver that cannot do without an input that the call lacks", drivers: [needsSeed, openai], gives: "openai-images-http@1", row: ["needy@1", "candidates", /needs `seed`, which this call does not have/] },
  { name: "takes that driver where the call has the input", drivers: [needsSeed, openai], call: { input: { prompt: "x", seed: 1 } }, gives: "needy@1" },
  { name: "names the input that every driver needs", drivers: [needsSeed], gives: "input_invalid/input_needed" },
  { name: "misses nothing where the question is about the tool", drivers: [needsSeed], call: { input: {}, anyInput: true }, gives: "needy@1" },
  { name: "drops a driver whose mapping does not take a value", drivers: [sketch("m", { entry: { mapping: { n: { from: "prompt", transform: "to_number" } } } })], gives: "no_route/mapping_failed" },
]

const withAuth = sketch("signed", { cost: 1, driver: { auth } })
const withSetup = sketch("set-up", {
  cost: 2,
  driver: { setup: [{ id: "token", kind: "prompt", prompt: "?", answer: { type: "text" } }] },
})
// biome-ignore format: a table reads by rows
const capability: readonly Case[] = [
  { name: "treats a driver without known availability as unavailable", drivers: [cli, openai], availability: { "shell@1": undefined }, gives: "openai-images-http@1", row: ["shell@1", "capability", /not known/] },
  { name: "names the missing program as the reason", drivers: [cli], availability: { "shell@1": gone }, gives: "tool_unavailable/tool_unavailable" },
  { name: "names a version mismatch as the reason", drivers: [cli], availability: { "shell@1": old }, gives: "version_mismatch/version_mismatch" },
  { name: "says `several` when the closest rejections differ", drivers: [cli, openai], availability: { "shell@1": gone, "openai-images-http@1": old }, gives: "no_route/several" },
  { name: "finds no route where one driver needs a login and another is not installed", drivers: [withAuth, cli], availability: { "shell@1": gone }, gives: "no_route/several" },
  { name: "finds no route where one driver is denied and another of the wrong version", drivers: [sdxl, cli], availability: { "shell@1": old }, policy: { tags: { deny: ["self-hosted"] } }, gives: "no_route/several" },
  { name: "says that a login is missing where that is so of every candidate", drivers: [withAuth, mistral], gives: "auth_required/auth_required" },
  { name: "treats a missing login state as not logged in", drivers: [withAuth], gives: "auth_required/auth_required", row: ["signed@1", "capability", /needs a login/] },
  { name: "takes a driver that is logged in", drivers: [withAuth], auth: { "signed@1": { state: "authed" } }, gives: "signed@1" },
  { name: "prefers a dearer driver that needs no login", drivers: [withAuth, openai], gives: "openai-images-http@1" },
  ...(["unknown", "unauthed", "logging-in", "expired"] as const).map((state): Case => ({ name: `asks for a login in state ${state}`, drivers: [withAuth], auth: { "signed@1": { state } }, gives: "auth_required/auth_required" })),
  { name: "drops a driver marked unavailable", drivers: [withAuth], auth: { "signed@1": { state: "unavailable" } }, gives: "tool_unavailable/tool_unavailable" },
  { name: "lets a login-only call through without a login", drivers: [withAuth], call: { loginOnly: true }, gives: "signed@1" },
  { name: "asks for set-up steps that were not done", drivers: [withSetup], gives: "setup_required/setup_required" },
  { name: "takes a driver without auth whose set-up is done", drivers: [withSetup], auth: { "set-up@1": { state: "unauthed" } }, gives: "set-up@1" },
  { name: "finds no route where one driver waits for a login and another for set-up", drivers: [withSetup, withAuth], gives: "no_route/several" },
  { name: "does not ask for the login of a driver that the policy denies", drivers: [sketch("signed", { driver: { auth, policyTags: ["x"] } })], policy: { tags: { deny: ["x"] } }, gives: "policy_violation/policy_violation", row: ["signed@1", "capability", /needs a login, and the policy denies/] },
  { name: "does not ask for the login of a program that is not there", drivers: [withAuth], availability: { "signed@1": gone }, gives: "tool_unavailable/tool_unavailable" },
  { name: "takes a driver back once its failed check is five minutes old", drivers: [cli], health: { "shell@1": failedAt(0) }, now: 5 * minute, gives: "shell@1" },
  { name: "keeps a driver out one millisecond before that", drivers: [cli], health: { "shell@1": failedAt(0) }, now: 5 * minute - 1, gives: "no_route/health_check_failed_recently" },
  { name: "counts every failed check as recent without a clock", drivers: [cli], health: { "shell@1": failedAt(0) }, gives: "no_route/health_check_failed_recently" },
  { name: "counts a failed check from the future as recent", drivers: [cli], health: { "shell@1": failedAt(9 * minute) }, now: 0, gives: "no_route/health_check_failed_recently" },
  { name: "uses the policy's health window", drivers: [cli], health: { "shell@1": failedAt(0) }, now: 2 * minute, policy: { healthWindowMs: minute }, gives: "shell@1" },
]

const undeclared = sketch("silent", { driver: { regionDeclared: false } })
// biome-ignore format: a table reads by rows
const policy: readonly Case[] = [
  { name: "matches tags by case", drivers: [openai], policy: { tags: { deny: ["Third-Party-LLM"] } }, gives: "openai-images-http@1" },
  { name: "lets deny beat allow", drivers: [sdxl], policy: { tags: { allow: ["pii-safe"], deny: ["self-hosted"] } }, gives: "policy_violation/policy_violation" },
  { name: "does not take a claimed tag for a verified one", drivers: [sketch("liar", { driver: { policyTags: ["pii-safe"] }, over: { verifiedTags: [] } })], policy: { tags: { allow: ["pii-safe"] } }, gives: "policy_violation/policy_violation", row: ["liar@1", "policy", /claims `pii-safe`/] },
  { name: "denies by a claimed tag all the same", drivers: [sketch("honest", { driver: { policyTags: ["third-party"] }, over: { verifiedTags: [] } })], policy: { tags: { deny: ["third-party"] } }, gives: "policy_violation/policy_violation" },
  { name: "takes an empty allow list for none", drivers: [openai], policy: { tags: { allow: [] } }, gives: "openai-images-http@1" },
  { name: "does not let an undeclared region satisfy a constraint", drivers: [undeclared], policy: { regions: ["global"], globalSatisfiesRegion: true }, gives: "no_route/no_route_in_region", row: ["silent@1", "policy", /declares no region/] },
  { name: "does not let `global` satisfy a constraint by default", drivers: [openai], policy: { regions: ["EU"] }, gives: "no_route/no_route_in_region" },
  { name: "lets an explicit `global` satisfy it where the policy says so", drivers: [openai], policy: { regions: ["EU"], globalSatisfiesRegion: true }, gives: "openai-images-http@1" },
  { name: "matches regions exactly", drivers: [mistral], auth: { "mistral-image-eu-http@1": { state: "authed" } }, policy: { regions: ["eu"] }, gives: "no_route/no_route_in_region" },
  { name: "lets a call narrow the policy's regions", drivers: [mistral], auth: { "mistral-image-eu-http@1": { state: "authed" } }, policy: { regions: ["EU", "US"] }, call: { regions: ["EU"] }, gives: "mistral-image-eu-http@1" },
  { name: "does not let a call widen the policy's regions", drivers: [sdxl], policy: { regions: ["EU"] }, call: { regions: ["self-hosted"] }, gives: "no_route/no_route_in_region" },
  { name: "does not let `global` satisfy regions that exclude each other", drivers: [openai], policy: { regions: ["EU"], globalSatisfiesRegion: true }, call: { regions: ["US"] }, gives: "no_route/no_route_in_region" },
  { name: "holds a call's own region without a policy", drivers: three, call: { regions: ["self-hosted"] }, gives: "host-sdxl-sdk@1" },
]

// biome-ignore format: a table reads by rows
const pins: readonly Case[] = [
  { name: "takes a pin with its major", drivers: three, call: { pin: "openai-images-http@1" }, gives: "openai-images-http@1" },
  { name: "refuses a pin of another major", drivers: three, call: { pin: "openai-images-http@2" }, gives: "pinned_provider_unavailable/not_a_candidate" },
  { name: "refuses a pin of an unknown driver", drivers: three, call: { pin: "nobody" }, gives: "pinned_provider_unavailable/not_a_candidate" },
  { name: "refuses a pinned driver that is not there", drivers: three, call: { pin: "openai-images-http" }, availability: { "openai-images-http@1": gone }, gives: "pinned_provider_unavailable/tool_unavailable" },
  { name: "refuses a pinned driver that the policy denies", drivers: three, call: { pin: "host-sdxl-sdk" }, policy: { tags: { deny: ["self-hosted"] } }, gives: "pinned_provider_unavailable/policy_violation" },
  { name: "refuses a pinned driver in another region", drivers: three, call: { pin: "openai-images-http" }, policy: { regions: ["self-hosted"] }, gives: "pinned_provider_unavailable/region_mismatch" },
  { name: "asks for the pinned driver's login", drivers: [withAuth, openai], call: { pin: "signed" }, gives: "auth_required/auth_required" },
  { name: "lets a pin beat the contract's default", drivers: three, tool: toolOf({ defaultImplementation: "replicate-flux-http" }), call: { pin: "openai-images-http" }, gives: "openai-images-http@1" },
  { name: "takes the higher major of a pinned id", drivers: [sketch("p", { cost: 1 }), sketch("p", { cost: 1, driver: { version: "2.0.0", major: 2 } })], call: { pin: "p" }, gives: "p@2" },
]

const kinds: readonly DriverKind[] = ["builtin", "sdk", "http", "mcp", "cli"]
// biome-ignore format: a table reads by rows
const ranking: readonly Case[] = [
  { name: "takes the contract's default before a cheaper one", drivers: three, tool: toolOf({ defaultImplementation: "openai-images-http" }), gives: "openai-images-http@1", row: ["host-sdxl-sdk@1", "rank", /default/] },
  { name: "goes on to cost when the default was dropped", drivers: three, tool: toolOf({ defaultImplementation: "openai-images-http" }), availability: { "openai-images-http@1": gone }, gives: "host-sdxl-sdk@1" },
  { name: "lets the entry's cost beat the driver's", drivers: [sketch("a", { cost: 5, driver: { costUnitsPerCall: 1 } }), sketch("b", { cost: 4 })], gives: "b@1" },
  { name: "uses the driver's cost where the entry is silent", drivers: [sketch("a", { driver: { costUnitsPerCall: 1 } }), sketch("b", { cost: 4 })], gives: "a@1" },
  { name: "ranks an undeclared cost of a metered tool behind any declared", drivers: [sketch("a"), sketch("b", { cost: 1e9 })], gives: "b@1" },
  { name: "ranks an undeclared cost of a trivial tool as nothing", drivers: [sketch("a"), sketch("b", { cost: 1 })], tool: toolOf({ costClass: "trivial" }), gives: "a@1" },
  { name: "takes the cheaper class of equal costs", drivers: [sketch("a", { cost: 1, driver: { costClass: "expensive" } }), sketch("b", { cost: 1, entry: { costClass: "metered" } })], gives: "b@1", row: ["a@1", "rank", /cost class is metered, that of this one expensive/] },
  { name: "takes a driver that calls itself trivial for free where it names no units", drivers: [sketch("a", { cost: 1 }), sketch("b", { driver: { costClass: "trivial" } })], gives: "b@1" },
  { name: "does not compare units of two currencies", drivers: [sketch("a", { cost: 1, driver: { currency: "JPY" } }), sketch("b", { cost: 90 })], gives: "b@1", row: ["a@1", "rank", /costs 90 a call, this one 1 in JPY/] },
  { name: "compares units of one currency, whichever", drivers: [sketch("a", { cost: 9, driver: { currency: "JPY" } }), sketch("b", { cost: 1, entry: { currency: "JPY" } })], gives: "b@1" },
  ...kinds.slice(0, -1).map((kind, index): Case => ({
    name: `puts kind ${kind} before ${kinds[index + 1]}`, drivers: [sketch("a", { kind: kinds[index + 1] ?? "cli", cost: 1 }), sketch("b", { kind, cost: 1 })], gives: "b@1", row: ["a@1", "rank", new RegExp(`kind ${kind} comes before`)],
  })),
  { name: "lets cost beat kind", drivers: [sketch("a", { kind: "cli", cost: 1 }), sketch("b", { kind: "builtin", cost: 2 })], gives: "a@1" },
  { name: "takes the more recently healthy of equals", drivers: [sketch("a", { cost: 1 }), sketch("b", { cost: 1 })], health: { "a@1": { ok: true, at: 1 }, "b@1": { ok: true, at: 2 } }, gives: "b@1" },
  { name: "ranks an unchecked driver behind a healthy one", drivers: [sketch("a", { cost: 1 }), sketch("b", { cost: 1 })], health: { "b@1": { ok: true, at: 0 } }, gives: "b@1" },
  { name: "lets kind beat health", drivers: [sketch("a", { kind: "sdk", cost: 1 }), sketch("b", { cost: 1 })], health: { "b@1": { ok: true, at: 9 } }, gives: "a@1" },
  { name: "ends at the id in code-point order", drivers: [sketch("b", { cost: 1 }), sketch("a.b", { cost: 1 }), sketch("a-b", { cost: 1 })], gives: "a-b@1" },
  { name: "takes the higher major of one id", drivers: [sketch("a", { cost: 1 }), sketch("a", { cost: 1, driver: { version: "2.1.0", major: 2 } })], gives: "a@2" },
]

const outcome = (input: ResolveInput): string => {
  const result = resolve(input)
  return result.ok ? result.driver.key : `${result.code}/${result.cause.reason}`
}

describe.each([
  ["the routing showcase of AIP-30", showcase],
  ["phase 1, candidates", candidates],
  ["phase 2, capability", capability],
  ["phase 3, policy", policy],
  ["phase 4, pins", pins],
  ["phase 5, ranking", ranking],
])("%s", (_, cases) => {
  it.each(cases.map((each) => [each.name, each] as const))("%s", (_name, each) => {
    const input = inputOf(each)
    expect(outcome(input)).toBe(each.gives)
    if (each.row === undefined) return
    const [driver, phase, reason] = each.row
    const found = resolve(input).rows.find((row) => row.driver === driver)
    expect(found?.phase).toBe(phase)
    if (reason !== undefined) expect(found?.reason).toMatch(reason)
  })
})

describe("what the resolver hands back", () => {
  it("maps the input to driver-side keys and leaves the rest", () => {
    const mapped = sketch("m", {
      entry: { mapping: { text: { from: "prompt", transform: "uppercase" }, size: { from: "aspect" } } },
    })
    const result = resolve(inputOf({ drivers: [mapped], call: { input: { prompt: "a cat", seed: 3 } } }))
    expect(result.ok && result.mappedInput).toEqual({ text: "A CAT", seed: 3 })
  })

  it("carries the login block and the driver with auth_required", () => {
    const result = resolve(inputOf({ drivers: [withAuth] }))
    expect(!result.ok && result.cause).toMatchObject({
      driver: "signed@1",
      login: { cmd: "x login" },
      fix: "run `caisson login signed@1`",
    })
  })

  it("carries the open steps with setup_required", () => {
    const result = resolve(inputOf({ drivers: [withSetup] }))
    expect(!result.ok && result.cause.pendingSetup).toEqual(["token"])
  })

  it("lists every unsupported field once, sorted", () => {
    const result = resolve(
      inputOf({ drivers: [openai, dropsSeed], call: { input: { prompt: "x", seed: 1, negative_prompt: "y" } } }),
    )
    expect(!result.ok && result.cause.fields).toEqual(["negative_prompt", "seed"])
  })

  it("keeps the rejections of all candidates in the cause", () => {
    const result = resolve(
      inputOf({
        drivers: [dropsSeed, cli, sdxl],
        call: { input: { prompt: "x", seed: 1 } },
        availability: { "shell@1": gone },
        policy: { tags: { deny: ["self-hosted"] } },
      }),
    )
    expect(!result.ok && result.cause.rejections.map((each) => each.driver)).toEqual(["host-sdxl-sdk@1", "shell@1"])
  })

  it("writes the fields of driver.resolved", () => {
    const result = resolve(
      inputOf({
        drivers: [...three, cli],
        availability: { "shell@1": gone },
        policy: { tags: { deny: ["self-hosted"] } },
        call: { pin: "replicate-flux-http" },
      }),
    )
    expect(result.audit).toEqual({
      type: "driver.resolved",
      tool_id: "image.create",
      tool_version: "1.0.0",
      candidates_total: 4,
      candidates_passed_phase_2_capability: 3,
      candidates_passed_phase_3_policy: 2,
      pinned_provider: "replicate-flux-http",
      rejected: [
        { provider_id: "host-sdxl-sdk@1", phase: 3, reason: "policy_violation" },
        { provider_id: "shell@1", phase: 2, reason: "tool_unavailable" },
      ],
      selected: { provider_id: "replicate-flux-http@1", kind: "http", cost_units_per_call: 2.5 },
    })
  })

  it("never puts the value of an input in rows, cause or audit", () => {
    const result = resolve(
      inputOf({ drivers: [openai, dropsSeed], call: { input: { prompt: "s3cr3t-value", seed: 1 } } }),
    )
    expect(JSON.stringify({ ...result, driver: null, binding: null })).not.toContain("s3cr3t-value")
  })
})
