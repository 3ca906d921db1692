/** Images that a driver names by their digest are a stranger's: what they say of themselves runs nothing and opens nothing. */
import { mkdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { Readable } from "node:stream"
import { afterAll, expect, it } from "vitest"
import { openEngine } from "../../../src/sandbox/docker/engine/engine.ts"
import { openFolder, openWorld } from "../../e2e/host-world.ts"
import { acquireEngine } from "../../support/docker-engine.ts"
import { removeFolder } from "../../support/remove-folder.ts"
import { engineSuite } from "./engine-suite.ts"
import { localBase } from "./local-base.ts"

const engine = await acquireEngine()
const socket = engine.ok ? engine.socket : ""
const api = openEngine({ origin: "given", socketPath: socket })

const tool = `---
name: Try
id: image.try
description: Says what it may write.
version: 1.0.0
inputs: { type: object }
outputs: { type: string }
timeout_ms: 60000
---
`
const code =
  "import { writeFileSync } from 'node:fs'; export default () => { const left = []; for (const at of ['/data', '/usr', '/var']) { try { writeFileSync(at + '/x', 'x'); left.push(at) } catch {} } return left.join() + (process.env.IMAGES ?? '') }"
const driver = (image: string): string => `---
name: Try
id: image-try
description: d
version: 1.0.0
kind: sdk
code: { sources: [{ inline: { path: tool.mjs, content: "${code}" } }] }
run: tool.mjs
runner: { engine: sandbox, image: "${image}", needs: { language: node } }
implements: [{ tool: image.try, version: ^1.0.0 }]
---
`

engineSuite("an image that a driver names", engine, () => {
  afterAll(async () => {
    if (engine.ok) await engine[Symbol.asyncDispose]()
  })

  it.each([
    ["has volumes", { Volumes: { "/data": {} } }],
    [
      "sets variables that reach what runs before the program",
      { Env: ["PERL5OPT=-Mevil", "PERL5LIB=/evil", "IMAGES=own"] },
    ],
    ["has steps for whoever builds on it", { OnBuild: ['RUN ["/usr/bin/sleep", "nothing"]'] }],
    ["is for another user, with a check of its own", { User: "65534", Healthcheck: { Test: ["CMD", "/usr/bin/ls"] } }],
  ])(
    "%s: nothing of that holds",
    async (name, config) => {
      const mark = `x${process.pid}${name.length}`
      const texts = { "data/": "", "evil/evil.pm": "package evil; BEGIN { exit 0 } 1;\n" }
      const base = await localBase(mark, "", "caisson/test-base", { config, texts })
      expect(await api.load(Readable.from([base.bytes]))).toMatchObject({ ok: true })
      const manifests = openFolder()
      try {
        for (const [folder, file, text] of [
          ["t", "TOOL.md", tool],
          ["d", "DRIVER.md", driver(base.id)],
        ] as const) {
          mkdirSync(join(manifests, folder))
          writeFileSync(join(manifests, folder, file), text)
        }
        await using world = await openWorld(`docker: { engine: "unix://${socket}" }\n`, {
          manifests: [manifests],
          backend: "docker",
        })
        const envelope = await world.call("image.try", {})
        expect(envelope.ok ? envelope.value : envelope.error).toBe("")
      } finally {
        removeFolder(manifests)
        await api.removeImage(`caisson/test-base:${mark}`)
      }
    },
    180_000,
  )
})
