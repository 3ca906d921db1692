/** What the runner image carries of `src/runner`, and that it runs there, with a real engine and nothing of the host's. */
import { execFileSync } from "node:child_process"
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { Readable } from "node:stream"
import Docker from "dockerode"
import { afterAll, beforeAll, expect, it } from "vitest"
import { openEngine } from "../../../src/sandbox/docker/engine/engine.ts"
import { onlyFile } from "../../../src/sandbox/docker/engine/only-file.ts"
import { ensureRunner } from "../../../src/sandbox/docker/images/images.ts"
import { acquireEngine } from "../../support/docker-engine.ts"
import { removeFolder } from "../../support/remove-folder.ts"
import { openFolder } from "../../e2e/host-world.ts"
import { engineSuite } from "./engine-suite.ts"
import { localBase } from "./local-base.ts"

const engine = await acquireEngine()
const socket = engine.ok ? engine.socket : ""
const api = openEngine({ origin: "given", socketPath: socket })
const base = `caisson/test-base:h${process.pid}`
const sources = join(import.meta.dirname, "../../../src/runner")

engineSuite("the runner image", engine, () => {
  let image = ""
  let folder = ""
  beforeAll(async () => {
    if (!engine.ok) return
    folder = openFolder()
    expect(await api.load(Readable.from([(await localBase(`h${process.pid}`)).bytes]))).toMatchObject({ ok: true })
    const made = await ensureRunner({ engine: api, base })
    if (!made.ok) throw new Error(made.failure.message)
    image = made.value
  }, 180_000)
  afterAll(async () => {
    if (!engine.ok) return
    for (const name of [image, base]) await api.removeImage(name)
    removeFolder(folder)
    await engine[Symbol.asyncDispose]()
  })

  it.each(["bridge.pl", "prune.pl", "run-node.mjs", "run-python.py"])("carries %s, to the byte", async (name) => {
    const made = await api.create({ Image: image, Cmd: ["/"], HostConfig: { NetworkMode: "none" } })
    if (!made.ok) throw new Error(made.failure.message)
    try {
      const tar = await api.read(made.value, `/usr/lib/caisson/${name}`)
      const content = tar.ok ? await onlyFile(tar.value) : undefined
      expect(content?.equals(readFileSync(join(sources, name)))).toBe(true)
    } finally {
      await api.remove(made.value)
    }
  })

  /** One request to a shim of the image, on descriptors 3 and 4. */
  const ask = async (
    command: string,
    module: string,
    text: string,
    binds: readonly string[] = [],
  ): Promise<unknown> => {
    const own = join(folder, module.replaceAll("/", "-"))
    mkdirSync(own)
    writeFileSync(join(own, module), text)
    const request = {
      nonce: "n",
      most: 65_536,
      do: "call",
      module: { path: `/io/${module}` },
      ref: ["default"],
      args: [{ n: 20 }],
    }
    const body = Buffer.from(JSON.stringify(request))
    const head = Buffer.alloc(4)
    head.writeUInt32BE(body.length, 0)
    writeFileSync(join(own, "ask"), Buffer.concat([head, body]))
    const docker = new Docker({ socketPath: socket })
    const container = await docker.createContainer({
      Image: image,
      Entrypoint: ["/bin/sh"],
      Cmd: ["-c", `exec ${command} 3</io/ask 4>/io/answer`],
      HostConfig: { NetworkMode: "none", Binds: [`${own}:/io`, ...binds] },
    })
    try {
      await container.start()
      await container.wait()
      const answer = existsSync(join(own, "answer")) ? readFileSync(join(own, "answer")) : Buffer.alloc(0)
      return answer.length < 4
        ? String(await container.logs({ stdout: true, stderr: true }))
        : JSON.parse(answer.subarray(4).toString("utf8"))
    } finally {
      await container.remove({ force: true })
    }
  }
  it("calls a function of a Node module by its own Node and shim", async () => {
    const answer = await ask(
      "/usr/local/bin/node /usr/lib/caisson/run-node.mjs",
      "m.mts",
      "export default ({ n }: { n: number }) => ({ n: n + 1 })",
    )
    expect(answer).toEqual({ nonce: "n", type: "result", value: { n: 21 }, streamed: false })
  }, 60_000)
  it("calls a function of a Python module by its own Python and shim", async () => {
    // The test's base has the interpreter of this machine, and not its library.
    const where = execFileSync("/usr/bin/python3", ["-I", "-c", "import os; print(os.path.dirname(os.__file__))"])
    const library = where.toString("utf8").trim()
    const binds = [`${library}:${library}:ro`]
    const answer = await ask(
      "/usr/bin/python3 -I -B /usr/lib/caisson/run-python.py",
      "m.py",
      "def main(given):\n    return {'n': given['n'] + 2}\n",
      binds,
    )
    expect(answer).toMatchObject({ nonce: "n", type: "result", value: { n: 22 } })
  }, 60_000)
})
