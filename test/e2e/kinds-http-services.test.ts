/** Drivers of kind http against real services: Debian's Prometheus, and verdaccio. */
import { mkdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { afterAll, beforeAll, expect, it } from "vitest"
import { createHost, processCaller } from "../../src/host/index.ts"
import type { Envelope, Host } from "../../src/host/types.ts"
import { describeNeeding } from "../support/needing.ts"
import { removeFolder } from "../support/remove-folder.ts"
import { ensurePrograms } from "../support/servers/packages.ts"
import { type Running, startServer } from "../support/servers/process.ts"
import { ensureVerdaccio, startVerdaccio } from "../support/servers/verdaccio.ts"
import { openFolder } from "./host-world.ts"

interface Place extends AsyncDisposable {
  readonly host: Host
  call(tool: string, input: object): Promise<Envelope>
}

/** A host with these manifests (`name/FILE` → front matter), to which the service's name is mapped. */
const openPlace = async (
  name: string,
  { port }: Running,
  manifests: Readonly<Record<string, string>>,
): Promise<Place> => {
  const folder = openFolder()
  for (const [path, front] of Object.entries(manifests)) {
    mkdirSync(join(folder, "m", path, ".."), { recursive: true })
    writeFileSync(join(folder, "m", path), `---\nversion: 1.0.0\ndescription: d\n${front}\n---\n`)
  }
  mkdirSync(join(folder, "work"))
  const config = join(folder, "caisson.yaml")
  writeFileSync(config, `egress: { services: { ${name}: "127.0.0.1:${port}" } }\n`, { mode: 0o600 })
  const host = await createHost({ data: join(folder, "data"), manifests: [join(folder, "m")], config })
  return {
    host,
    call: (tool, input) =>
      host.call(
        { tool, input: input as never, workspace: join(folder, "work") },
        { caller: processCaller("alice"), approved: true },
      ),
    async [Symbol.asyncDispose]() {
      await host.close()
      removeFolder(folder)
    },
  }
}

describeNeeding("Prometheus", ensurePrograms({ prometheus: "prometheus" }), () => {
  let server: Running
  let place: Place
  beforeAll(async () => {
    server = await startServer({
      name: "prometheus",
      command: (port, folder) => {
        writeFileSync(join(folder, "p.yml"), "global: { scrape_interval: 1h }\n")
        return [
          "/usr/bin/prometheus",
          `--config.file=${folder}/p.yml`,
          `--storage.tsdb.path=${folder}/data`,
          `--web.listen-address=127.0.0.1:${port}`,
        ]
      },
    })
    place = await openPlace("prometheus.test", server, {
      "query/TOOL.md":
        "name: Query\nid: metrics.query\ninputs: { type: object, required: [query], properties: { query: { type: string }, time: { type: number } } }\noutputs: { type: array }\nidempotent: true\nretry: { max_attempts: 5, backoff: exponential, initial_ms: 200 }",
      "build/TOOL.md": "name: Build\nid: metrics.build\ninputs: { type: object }\noutputs: { type: string }",
      "prometheus-http/DRIVER.md": `name: Prometheus
id: prometheus-http
kind: http
base_url: http://prometheus.test:9090/api/v1
default_method: GET
network: { egress: ["prometheus.test:9090"] }
implements:
  - { tool: metrics.query, version: ^1.0.0, metadata: { http: { endpoint: /query, query_template: { query: "\${input.query}", time: "\${input.time}" }, response_extract: $.data.result } } }
  - { tool: metrics.build, version: ^1.0.0, metadata: { http: { endpoint: /status/buildinfo, response_extract: $.data.version } } }`,
    })
  })
  afterAll(async () => {
    await place?.[Symbol.asyncDispose]()
    await server?.[Symbol.asyncDispose]()
  })

  it("answers a query, whatever characters are in it", async () => {
    expect(await place.call("metrics.query", { query: "vector(6) * 7", time: 1 })).toMatchObject({
      ok: true,
      value: [{ metric: {}, value: [1, "42"] }],
      driver: "prometheus-http@1",
    })
    const query = 'label_replace(vector(1), "x", "a&b=c#d/é+ %", "", "")'
    expect(await place.call("metrics.query", { query })).toMatchObject({ value: [{ metric: { x: "a&b=c#d/é+ %" } }] })
  })

  it("tells its version", async () => {
    const envelope = await place.call("metrics.build", {})
    expect(envelope).toMatchObject({ ok: true, value: expect.stringMatching(/^2\./) })
  })

  it("says what is wrong with a query", async () => {
    const envelope = await place.call("metrics.query", { query: "sum(" })
    expect(envelope).toMatchObject({
      ok: false,
      error: {
        code: "upstream_error",
        retryable: false,
        details: { status: 400, body: expect.stringContaining("parse error") },
      },
    })
  })
})

describeNeeding("verdaccio", ensureVerdaccio(), () => {
  let server: Running
  let place: Place
  beforeAll(async () => {
    server = await startVerdaccio()
    const inputs = "inputs: { type: object, required: [name], properties: { name: { type: string } } }"
    place = await openPlace("packages.test", server, {
      "show/TOOL.md": `name: Show\nid: package.show\n${inputs}\noutputs: { type: string }`,
      "publish/TOOL.md": `name: Publish\nid: package.publish\n${inputs}\noutputs: { type: object }\nmutates: ["network:packages.test"]\napproval: on-mutate`,
      "packages-http/DRIVER.md": `name: Packages
id: packages-http
kind: http
base_url: http://packages.test:4873
network: { egress: ["packages.test:4873"] }
implements:
  - { tool: package.show, version: ^1.0.0, metadata: { http: { endpoint: "/\${input.name}", method: GET, response_extract: $.dist-tags.latest } } }
  - { tool: package.publish, version: ^1.0.0, metadata: { http: { endpoint: "/\${input.name}", method: PUT } } }`,
    })
  })
  afterAll(async () => {
    await place?.[Symbol.asyncDispose]()
    await server?.[Symbol.asyncDispose]()
  })

  const document = (name: string) => ({
    _id: name,
    name,
    "dist-tags": { latest: "1.2.3" },
    versions: { "1.2.3": { name, version: "1.2.3", dist: { tarball: "http://packages.test/x.tgz", shasum: "0" } } },
    _attachments: { "x-1.2.3.tgz": { content_type: "application/octet-stream", data: "eA==", length: 1 } },
  })

  it("keeps what is published, under a name with a scope too, and shows it", async () => {
    for (const name of ["bolt", "@acme/nut"]) {
      expect(await place.call("package.publish", document(name))).toMatchObject({ ok: true, value: { success: true } })
      expect(await place.call("package.show", { name })).toMatchObject({ ok: true, value: "1.2.3" })
    }
    expect(await place.call("package.publish", document("bolt"))).toMatchObject({
      ok: false,
      error: { code: "upstream_error", details: { status: 409 } },
    })
  })

  it("does not show what is not there, or needs a login, and says which", async () => {
    expect(await place.call("package.show", { name: "no-such-package" })).toMatchObject({
      error: { code: "upstream_error", details: { status: 404 } },
    })
    expect(await place.call("package.show", { name: "@locked/x" })).toMatchObject({ error: { code: "auth_required" } })
  })
})
