/** The specification's example of an image service, in both of the forms that it has there. */
import { getCACertificates, setDefaultCACertificates } from "node:tls"
import { afterEach, describe, expect, it } from "vitest"
import { createEgressProxy } from "../../../../src/egress-proxy/index.ts"
import { createCallAuthority } from "../../../../src/egress-proxy/tls/authority.ts"
import { httpKind } from "../../../../src/host/drivers/http/kind.ts"
import type { KindCall } from "../../../../src/host/drivers/kind.ts"
import { buildCatalogue } from "../../../../src/manifest/read/catalogue.ts"
import type { JsonObject, ManifestMode } from "../../../../src/manifest/types.ts"
import { asDriver, asTool, errors, load } from "../../../manifest/from-text.ts"
import { json, serve, noFiles, unpaced } from "./world.ts"

const roots = getCACertificates("default")
afterEach(() => setDefaultCACertificates(roots))

const tool = `
name: Make an image
id: image.create
description: d
version: 1.0.0
inputs: { type: object, required: [prompt], properties: { prompt: { type: string }, aspect: { type: string }, seed: { type: integer }, negative_prompt: { type: string } } }
outputs: { type: string }
mutates: ["network:*"]
approval: on-mutate`

/** AIP-31's: a base address, a header for the key, a body and a path to the result. */
const whole = `
name: Images
id: openai-images-http
description: d
version: 1.0.0
kind: http
base_url: https://api.openai.com
default_headers: { Authorization: "Bearer \${secrets.OPENAI_API_KEY}", Content-Type: application/json }
auth: { state: { env: [OPENAI_API_KEY] }, expiry: { detect: "http_status:401" } }
network: { egress: [api.openai.com] }
region: [global]
policy_tags: [third-party-llm]
implements:
  - tool: image.create
    version: ^1.0.0
    schema_narrowing: { drop_inputs: [seed, negative_prompt] }
    cost_override: { cost_units_per_call: 4 }
    metadata: { http: { endpoint: /v1/images/generations, method: POST, body_template: { model: dall-e-3, prompt: "\${input.prompt}", size: "\${input.aspect | default('1024x1024')}" }, response_extract: "$.data[0].url" } }`

/** AIP-30's: no base address, a key that is not said to go anywhere, and a transform that its code would bring. */
const bare = `
name: Images
id: openai-images-http
description: d
version: 1.0.0
kind: http
auth: { state: { env: [OPENAI_API_KEY] }, expiry: { detect: "http_status:401" } }
network: { egress: [api.openai.com] }
region: [global]
implements:
  - tool: image.create
    version: ^1.0.0
    schema_narrowing: { drop_inputs: [seed, negative_prompt] }
    mapping: { prompt: prompt, aspect: { from: aspect, transform: aspect_to_size } }
    metadata: { http: { endpoint: /v1/images/generations, method: POST, response_extract: "$.data[0].url" } }
health_check: { method: http, http: { method: GET, url: "https://api.openai.com/v1/models", expect_status: 200 }, every: PT5M }`

const callOf = (front: string, mode: ManifestMode, input: JsonObject): KindCall => {
  const contract = asDriver(load("DRIVER.md", front, mode))
  const made = asTool(load("TOOL.md", tool, mode))
  const [implementation] = contract.implements
  if (implementation === undefined) throw new Error("no entry")
  const { binding, diagnostics } = httpKind.bind(contract, 0, made, implementation)
  expect(diagnostics).toEqual([])
  return { tool: made, driver: { key: "openai-images-http@1", contract }, binding, input, context: {}, operation: "o" }
}

const act = async (call: KindCall, port: number) => {
  const made = httpKind.command(call)
  if (!made.ok || made.value.run !== "hosted") throw new Error("no command")
  await using proxy = await createEgressProxy({
    egress: ["api.openai.com"],
    services: { "api.openai.com": { address: "127.0.0.1", port } },
  })
  return await made.value.act({
    signal: new AbortController().signal,
    outputBytes: 65_536,
    tell: () => undefined,
    note: () => undefined,
    review: () => Promise.reject(new Error("nothing here is reviewed")),
    secret: async (name) => (name === "OPENAI_API_KEY" ? "sk-test-1234" : undefined),
    layer: noFiles,
    pace: unpaced,
    outlet: { connect: (to) => proxy.dial(to) },
  })
}

describe("openai-images-http", () => {
  const authority = createCallAuthority({ names: ["api.openai.com"] })
  const open = () => {
    setDefaultCACertificates([...roots, authority.caPem])
    return serve(json({ data: [{ url: "https://img.test/1" }] }), authority.leafFor("api.openai.com"))
  }

  it.each(["strict", "compat"] as const)("of AIP-31 loads in %s mode, and serves", async (mode) => {
    await using service = await open()
    expect(await act(callOf(whole, mode, { prompt: "a fox" }), service.port)).toMatchObject({
      ok: true,
      value: "https://img.test/1",
    })
    expect(service.requests[0]).toMatchObject({
      method: "POST",
      url: "/v1/images/generations",
      headers: { authorization: "Bearer sk-test-1234", "content-type": "application/json" },
    })
    expect(JSON.parse(service.bodies[0] ?? "")).toEqual({ model: "dall-e-3", prompt: "a fox", size: "1024x1024" })
  })

  it("of AIP-30 loads in compat mode with the one host that it declares, and its key is a bearer's", async () => {
    await using service = await open()
    const loaded = load("DRIVER.md", bare, "compat")
    expect(buildCatalogue([load("TOOL.md", tool, "compat"), loaded]).drivers).toHaveLength(1)
    expect(await act(callOf(bare, "compat", { prompt: "a fox" }), service.port)).toMatchObject({ ok: true })
    expect(service.requests[0]?.headers.authorization).toBe("Bearer sk-test-1234")
    expect(service.bodies).toEqual(['{"prompt":"a fox"}'])
  })

  it("of AIP-30 is told in strict mode that it needs an address", () => {
    expect(errors(load("DRIVER.md", bare, "strict")).join()).toMatch(/base_url/)
  })
})
