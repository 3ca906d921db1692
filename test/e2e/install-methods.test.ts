import { gzipSync } from "node:zlib"
import { afterAll, describe, expect, it } from "vitest"
import { tarOf, zipWith } from "../support/archives.ts"
import { acquireEngine } from "../support/docker-engine.ts"
import { describeNeeding } from "../support/needing.ts"
import { lastReceipt, openMethodsWorld, program } from "./methods-world.ts"

const engine = await acquireEngine()
afterAll(async () => {
  if (engine.ok) await engine[Symbol.asyncDispose]()
})

const archive = gzipSync(tarOf([{ name: "tool-1.2.3/bin/tool", content: program() }, { name: "tool-1.2.3/LICENSE" }]))
const zipped = zipWith([{ name: "tool", content: program() }])
const script = `#!/bin/sh
set -e
mkdir -p "$HOME/.local/bin"
cat > "$HOME/.local/bin/scripted" <<'END'
${program()}END
chmod 755 "$HOME/.local/bin/scripted"
`

const suite = (backend: "namespace" | "docker"): void => {
  it("a program comes by an archive, by itself and by a script, and is called from its frozen layer", async () => {
    await using made = await openMethodsWorld({
      backend,
      config: engine.ok ? `docker: { engine: "unix://${engine.socket}" }` : "",
      drivers: (server) => [
        {
          id: "packed",
          install: `[{ method: download, url: "${server.url("/tool.tar.gz")}", extract_bin: tool-1.2.3/bin/tool, verify_sha256: ${server.serve("/tool.tar.gz", archive)} }]`,
        },
        {
          id: "zipped",
          install: `[{ method: download, url: "${server.url("/tool.zip")}", extract_bin: ./tool, verify_sha256: ${server.serve("/tool.zip", zipped)} }]`,
        },
        {
          id: "bare",
          install: `[{ method: download, url: "${server.url("/bare")}", extract_bin: bare-linux-amd64, verify_sha256: ${server.serve("/bare", program())} }]`,
        },
        {
          id: "scripted",
          install: `[{ method: curl, url: "${server.url("/install.sh")}", verify_sha256: ${server.serve("/install.sh", script)} }]`,
        },
      ],
    })
    const { world } = made
    for (const name of ["packed", "zipped", "bare", "scripted"]) {
      expect(await world.call(`fixture.${name}`, { name: "Ada" })).toMatchObject({
        ok: false,
        error: { code: "tool_unavailable", hint: expect.stringContaining(`caisson install ${name}`) as string },
      })
      const report = await world.host.install(name)
      expect(report).toMatchObject({
        ok: true,
        driver: `${name}@1`,
        version: "1.2.3",
        layers: [{ digest: expect.stringMatching(/^sha256:/) as string }],
      })
      expect(await world.call(`fixture.${name}`, { name: "Ada" })).toMatchObject({ ok: true, value: "hello Ada\n" })
      const layer = report.ok ? report.layers[0]?.digest : undefined
      expect(lastReceipt(world.data)).toContain(`"layer":"${layer}"`)
    }
  })
}

describe("with the namespace backend", () => suite("namespace"))
describeNeeding("with the docker backend", engine.ok ? undefined : engine.reason, () => suite("docker"))
