/** What is sent: templates, and that no input changes where a request goes or how it is framed. */
import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { httpKind } from "../../../../src/host/drivers/http/kind.ts"
import { ask, callOf, json, serve } from "./world.ts"

describe("a request", () => {
  it("has the driver's method, path, query, headers and body, with the input's values in them", async () => {
    await using service = await serve(json({ data: [{ url: "u" }] }))
    const { outcome, facts, shown } = await ask({
      port: service.port,
      base: "http://api.test/v1",
      http: 'endpoint: "/items/${input.id}/x", method: POST, headers: { X-Note: "n ${input.note}" }, query_template: { n: "${input.n}", absent: "${input.list | json}", fixed: 1 }, body_template: { model: m, n: "${input.n}", text: "id=${input.id}", gone: "${input.list}", deep: ["${input.id}", { a: true }] }, response_extract: "$.data[0].url"',
      input: { id: "a b/é?&#", n: 3, note: "hi" },
    })
    expect(outcome).toMatchObject({ ok: true, value: "u" })
    const [request] = service.requests
    expect([request?.method, request?.url]).toEqual(["POST", "/v1/items/a%20b%2F%C3%A9%3F%26%23/x?n=3&fixed=1"])
    expect(request?.headers).toMatchObject({
      host: "api.test",
      "x-note": "n hi",
      "content-type": "application/json",
      accept: "application/json",
      "user-agent": "caisson",
    })
    expect(JSON.parse(service.bodies[0] ?? "")).toEqual({
      model: "m",
      n: 3,
      text: "id=a b/é?&#",
      deep: ["a b/é?&#", { a: true }],
    })
    expect(shown).toEqual(["POST", "http://api.test/v1/items/a%20b%2F%C3%A9%3F%26%23/x?n=3&fixed=1"])
    expect(facts).toMatchObject({ response_status: 200 })
  })

  it("is the input itself without a body template, and has no body where it is a GET", async () => {
    await using service = await serve(json(1))
    await ask({ port: service.port, http: "endpoint: /x, method: PUT", input: { id: "a", list: [1, { b: null }] } })
    await ask({ port: service.port, http: "endpoint: /x, method: GET", input: { id: "a" } })
    expect(service.bodies).toEqual(['{"id":"a","list":[1,{"b":null}]}', ""])
    expect(service.requests[1]?.headers["content-type"]).toBeUndefined()
  })

  it("has what a filter says for an absent value", async () => {
    await using service = await serve(json(1))
    await ask({
      port: service.port,
      http: `endpoint: "/x/\${input.id | default('none')}", method: POST, body_template: { size: "\${input.note | default('big')}", n: "\${input.n | default(7)}" }`,
    })
    expect(service.requests[0]?.url).toBe("/x/none")
    expect(service.bodies).toEqual(['{"size":"big","n":7}'])
  })

  it("has the contract's own default for an absent value, as a part of a text and as a value", async () => {
    await using service = await serve(json(1))
    const inputs = {
      type: "object",
      properties: { page: { type: "integer", default: 5 }, tags: { type: "array", default: ["a"] } },
    } as const
    const { outcome } = await ask({
      port: service.port,
      http: 'endpoint: "/p/${input.page}", method: POST, query_template: { q: "${input.page}" }, body_template: { tags: "${input.tags}" }',
      tool: { inputs },
    })
    expect(outcome).toMatchObject({ ok: true })
    expect([service.requests[0]?.url, service.bodies[0]]).toEqual(["/p/5?q=5", '{"tags":["a"]}'])
  })

  it("has secrets put in when it is sent, and nowhere that it is shown", async () => {
    await using service = await serve(json(1))
    const { shown } = await ask({
      port: service.port,
      http: 'endpoint: /x, method: GET, headers: { Authorization: "Bearer ${secrets.KEY}" }, query_template: { key: "${secrets.KEY}" }',
      secrets: { KEY: "s3cret-value" },
    })
    expect(service.requests[0]?.headers.authorization).toBe("Bearer s3cret-value")
    expect(service.requests[0]?.url).toBe("/x?key=s3cret-value")
    expect(shown).toEqual(["GET", "http://api.test/x?key=***"])
  })

  it("is not sent without its secret, or with one that no header can carry", async () => {
    await using service = await serve(json(1))
    const http = 'endpoint: /x, headers: { Authorization: "Bearer ${secrets.KEY}" }'
    expect((await ask({ port: service.port, http })).outcome).toMatchObject({ ok: false, code: "auth_required" })
    const { outcome } = await ask({ port: service.port, http, secrets: { KEY: "two\r\nlines-secret" } })
    expect(outcome).toMatchObject({ ok: false, code: "auth_required" })
    expect(JSON.stringify(outcome)).not.toContain("lines-secret")
    expect(service.requests).toHaveLength(0)
  })

  it("carries one idempotency key in all attempts of a call, and another in the next", async () => {
    await using service = await serve(json(1))
    const { call } = callOf({ port: service.port, http: "endpoint: /x, idempotency_key_header: Idempotency-Key" })
    const made = httpKind.command(call)
    expect(made).toMatchObject({ ok: true, value: { repeatable: true } })
    const http = "endpoint: /x, idempotency_key_header: Idempotency-Key"
    await ask({ port: service.port, http })
    await ask({ port: service.port, http })
    const keys = service.requests.map(({ headers }) => headers["idempotency-key"])
    expect(keys[0]).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-/)
    expect(new Set(keys).size).toBe(2)
  })

  it.each([
    ["a value that climbs", { id: ".." }],
    ["a value that climbs further", { id: "../../admin" }],
    ["a value that climbs by backslashes", { id: "..\\admin" }],
    ["an empty value", { id: "" }],
    ["a lone surrogate", { id: "\ud800" }],
  ])("is refused for %s in its path", async (_, input) => {
    const { outcome } = await ask({ port: 1, http: 'endpoint: "/items/${input.id}", method: GET', input })
    expect(outcome).toMatchObject({ ok: false, code: "input_invalid" })
  })

  it("is refused where a value climbs together with what the driver wrote beside it", async () => {
    const { outcome } = await ask({
      port: 1,
      http: 'endpoint: "/items/${input.id}${input.note}/x", method: GET',
      input: { id: ".", note: "." },
    })
    expect(outcome).toMatchObject({ ok: false, code: "input_invalid" })
  })

  it.each(["a\r\nX-Evil: 1", "a\nb", "a\0b", "a\u007fb", "é"])("is refused for %j in a header", async (note) => {
    const { outcome } = await ask({
      port: 1,
      http: 'endpoint: /x, headers: { X-Note: "${input.note}" }',
      input: { note },
    })
    expect(outcome).toMatchObject({ ok: false, code: "input_invalid", details: { field: "input.note" } })
  })

  it("asks the declared path of the declared host, whatever the input is", async () => {
    await using service = await serve(json(1))
    await fc.assert(
      fc.asyncProperty(
        fc.string({ unit: "grapheme", maxLength: 12 }),
        fc.string({ maxLength: 12 }),
        async (id, note) => {
          const before = service.requests.length
          const { outcome } = await ask({
            port: service.port,
            http: 'endpoint: "/items/${input.id}/end", method: GET, query_template: { q: "${input.note}" }, headers: { X-Note: "${input.note}" }',
            input: { id, note },
          })
          if (!outcome.ok) {
            expect(outcome.code).toBe("input_invalid")
            return
          }
          const request = service.requests[before]
          const url = new URL(request?.url ?? "", "http://api.test")
          expect(request?.headers.host).toBe("api.test")
          expect(url.pathname.split("/")).toHaveLength(4)
          expect(decodeURIComponent(url.pathname.split("/")[2] ?? "")).toBe(id)
          expect(url.searchParams.get("q")).toBe(note)
          expect(service.requests).toHaveLength(before + 1)
        },
      ),
      { numRuns: 60 },
    )
  })

  it.each([
    ['endpoint: "/x/${input.unknown}"', "template-unknown-value"],
    ['endpoint: "${input.list | each}"', "template-filter"],
    ["endpoint: /x, body_template: { a: \"${input.id | flag('--x')}\" }", "template-filter"],
  ])("is refused at registration: %s", (http, rule) => {
    const tool = {
      inputs: { type: "object", properties: { id: {}, list: { type: "array" } }, additionalProperties: false } as const,
    }
    expect(callOf({ port: 1, http, tool }).rules).toContain(rule)
  })

  it("names what a call cannot do without", () => {
    const { call } = callOf({
      port: 1,
      http: 'endpoint: "/x/${input.id}", body_template: { a: "${input.n}", b: "n ${input.note}" }',
    })
    expect(call.binding.needs.map(({ keys }) => keys.join("."))).toEqual(["id", "note"])
  })
})
