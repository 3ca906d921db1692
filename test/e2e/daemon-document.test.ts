/** The document that the daemon tells of itself: sound as OpenAPI, and true. */
import { createConfig, lintFromString } from "@redocly/openapi-core"
import { expect, it } from "vitest"
import { documentOfDaemon, type OpenApi } from "../../scripts/client-types.ts"
import { judgeBy } from "./daemon-judge.ts"

const findings = async (document: OpenApi): Promise<readonly string[]> => {
  const config = await createConfig({ extends: ["recommended"] })
  const told = await lintFromString({ source: JSON.stringify(document), config })
  return told.map(
    ({ ruleId, severity, message, location }) => `${severity} ${ruleId}: ${message} (${location[0]?.pointer ?? ""})`,
  )
}

it("has no fault that Redocly's recommended rules find, and a broken one has", async () => {
  const document = await documentOfDaemon()
  expect(await findings(document)).toEqual([])
  const { "/v1/calls/{id}": one, ...rest } = document.paths
  const broken = { ...document, paths: { ...rest, "/v1/calls/{id}/{other}": one } } as OpenApi
  expect((await findings(broken)).join("\n")).toContain("path-parameters-defined")
})

it("names each operation once, with a summary, its answers and what it refuses", async () => {
  const { paths } = await documentOfDaemon()
  const operations = Object.values(paths).flatMap((methods) => Object.values(methods))
  const names = operations.map(({ operationId }) => operationId)
  expect(new Set(names).size).toBe(names.length)
  expect(names).toEqual(expect.arrayContaining(["makeCall", "callEvents", "decideApproval", "createToken"]))
  for (const { operationId, summary, responses } of operations) {
    expect([operationId, summary]).toEqual([operationId, expect.stringMatching(/\S/)])
    expect([operationId, Object.keys(responses).some((status) => status.startsWith("2"))]).toEqual([operationId, true])
  }
})

it("judges answers: one that it does not have is told", async () => {
  const judge = judgeBy(await documentOfDaemon())
  const json = "application/json; charset=utf-8"
  const call = { method: "GET", path: "/v1/approvals", status: 200, type: json }
  expect(judge({ ...call, text: '{"approvals":[]}' })).toBeUndefined()
  expect(judge({ ...call, text: '{"approvals":[{}]}' })).toMatch(/id/)
  expect(judge({ ...call, text: "{}" })).toMatch(/approvals/)
  expect(judge({ ...call, status: 299, text: "{}" })).toMatch(/status/)
  expect(judge({ ...call, type: "text/html", text: "" })).toMatch(/text\/html/)
  expect(judge({ ...call, path: "/v1/nothing", text: "{}" })).toMatch(/not in the document/)
})
