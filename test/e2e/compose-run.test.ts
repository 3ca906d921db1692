/**
 * The compose file that operators copy, run by a real compose against an engine of the tests', on a base of this machine's own
 * programs: what it builds, starts and stops is asked over TCP, as a client does.
 */
import { execFileSync, spawn, spawnSync } from "node:child_process"
import { once } from "node:events"
import { mkdtempSync, readFileSync, rmSync } from "node:fs"
import { createServer, type IncomingMessage, request as ask, type Server } from "node:http"
import { createServer as createListener, type AddressInfo } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Readable } from "node:stream"
import { text } from "node:stream/consumers"
import { afterAll, beforeAll, expect, it } from "vitest"
import { openEngine } from "../../src/sandbox/docker/engine/engine.ts"
import { localBase, withLibraries } from "../sandbox/docker/local-base.ts"
import { acquireEngine, type EngineOrReason } from "../support/docker-engine.ts"
import { describeNeeding, noRoot } from "../support/needing.ts"
import { patience } from "../support/patience.ts"

const root = join(import.meta.dirname, "../..")
const program = "docker-compose"
const known = spawnSync(program, ["version", "--short"], { encoding: "utf8" })
const missing = noRoot ?? (known.status === 0 ? undefined : "no docker-compose here: apt-get install -y docker-compose")

/** What every newer docker-compose makes of `systempaths=unconfined` itself; Debian's 1.29 passes the word on, and no engine knows it. */
const translated = (body: string): string => {
  const asked = JSON.parse(body) as { HostConfig: { SecurityOpt: string[]; MaskedPaths?: []; ReadonlyPaths?: [] } }
  const { HostConfig: host } = asked
  if (!host.SecurityOpt.includes("systempaths=unconfined")) throw new Error("the compose file does not ask for it")
  host.SecurityOpt = host.SecurityOpt.filter((word) => word !== "systempaths=unconfined")
  host.MaskedPaths = []
  host.ReadonlyPaths = []
  return JSON.stringify(asked)
}
/** The engine, as an old docker-compose sees it. */
const openTranslator = async (socketPath: string, at: string): Promise<Server> => {
  const pass = async (request: IncomingMessage): Promise<IncomingMessage> => {
    const { method, url, headers } = request
    const body = url?.includes("/containers/create") === true ? translated(await text(request)) : undefined
    const length = body === undefined ? {} : { "content-length": Buffer.byteLength(body) }
    const asked = ask({ socketPath, method, path: url, headers: { ...headers, ...length }, agent: false })
    const response = once(asked, "response") as Promise<[IncomingMessage]>
    if (body === undefined) request.pipe(asked)
    else asked.end(body)
    return (await response)[0]
  }
  const server = createServer((request, response) => {
    pass(request).then(
      (told) => {
        response.writeHead(told.statusCode ?? 500, told.headers)
        told.pipe(response)
      },
      (error: Error) => response.writeHead(500).end(JSON.stringify({ message: error.message })),
    )
  })
  server.listen(at)
  await once(server, "listening")
  return server
}
const freePort = async (): Promise<number> => {
  const listener = createListener().listen(0, "127.0.0.1")
  await once(listener, "listening")
  const { port } = listener.address() as AddressInfo
  listener.close()
  await once(listener, "close")
  return port
}
const pathOf = (name: string): string => execFileSync("which", [name], { encoding: "utf8" }).trim()

describeNeeding("the compose file, run", missing, () => {
  let engine: EngineOrReason
  let port: number
  let translator: Server | undefined
  const folder = mkdtempSync(join(tmpdir(), "caisson-compose-"))
  const workspaces = join(folder, "work")
  const repository = `caisson/compose-base-${process.pid}`
  const project = `caisson${process.pid}`
  const run = async (socket: string, command: string, words: readonly string[]) => {
    const child = spawn(command, words, {
      env: {
        ...process.env,
        DOCKER_HOST: `unix://${socket}`,
        DOCKER_BUILDKIT: "0",
        CAISSON_BASE: `${repository}:compose`,
        CAISSON_PORT: String(port),
        CAISSON_WORKSPACES: workspaces,
      },
      stdio: ["ignore", "pipe", "pipe"],
    })
    const [stdout, stderr, [status]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, "close")])
    return { status: status as number | null, stdout, said: stdout + stderr }
  }
  const composeAt = (socket: string, words: readonly string[]) =>
    run(socket, program, ["-p", project, "-f", join(root, "deploy/compose.yaml"), ...words])
  beforeAll(async () => {
    engine = await acquireEngine()
    if (!engine.ok) return
    port = await freePort()
    const files = [
      "bwrap",
      "jq",
      "git",
      "install",
      "setpriv",
      "unshare",
      "mount",
      "umount",
      "nsenter",
      process.execPath,
    ]
      .map(pathOf)
      .flatMap(withLibraries)
    const copies = Object.fromEntries(
      files.filter((file) => file.startsWith("/usr/")).map((file) => [file.slice(1), file]),
    )
    const node = `#!/bin/sh\nexec /opt/caisson/node_modules/node-linux-${process.arch}/bin/node "$@"\n`
    const base = await localBase("compose", "", repository, { copies, texts: { "usr/bin/node": node, "tmp/": "" } })
    const loaded = await openEngine({ origin: "given", socketPath: engine.socket }).load(
      Readable.from([base.bytes]),
      () => undefined,
    )
    if (!loaded.ok) throw new Error(loaded.failure.message)
    if (known.stdout.startsWith("1.")) translator = await openTranslator(engine.socket, join(folder, "docker.sock"))
  }, 240_000 * patience)
  afterAll(async () => {
    if (engine.ok) {
      await composeAt(engine.socket, ["down", "--volumes", "--rmi", "all", "--timeout", "20"])
      await openEngine({ origin: "given", socketPath: engine.socket }).removeImage(`${repository}:compose`)
      translator?.close()
      await engine[Symbol.asyncDispose]()
    }
    rmSync(folder, { recursive: true, force: true })
  }, 120_000 * patience)

  /** What docs/operating.md has typed, for this project. */
  const documented = (): readonly string[] => {
    const [, section = ""] = readFileSync(join(root, "docs/operating.md"), "utf8").split("\n## In a container\n")
    const block = /```sh\n(.*?)```/s.exec(section)?.[1] ?? ""
    const file = join(root, "deploy/compose.yaml")
    return block
      .replaceAll("sudo ", "")
      .replaceAll("/srv/workspaces", workspaces)
      .replaceAll("docker compose -f deploy/compose.yaml", `${program} -p ${project} -f ${file}`)
      .replaceAll(" exec ", " exec -T ")
      .replaceAll("7433/", `${port}/`)
      .trim()
      .split("\n")
  }
  const done = async (words: readonly string[], socket: string): Promise<string> => {
    const ended = await composeAt(socket, words)
    if (ended.status !== 0) throw new Error(`docker-compose ${words.join(" ")}: ${ended.said}`)
    return ended.stdout
  }
  /** What the engine has of this project. */
  const leftBy = async (socketPath: string): Promise<unknown> => {
    const listed = async (kind: string, filters: object): Promise<unknown> => {
      const asked = ask({ socketPath, path: `/${kind}filters=${encodeURIComponent(JSON.stringify(filters))}` })
      asked.end()
      const [response] = (await once(asked, "response")) as [IncomingMessage]
      return JSON.parse(await text(response))
    }
    const label = [`com.docker.compose.project=${project}`]
    return {
      containers: await listed("containers/json?all=1&", { label }),
      volumes: ((await listed("volumes?", { label })) as { Volumes: unknown[] | null }).Volumes ?? [],
      images: await listed("images/json?", { reference: [`${project}*`] }),
    }
  }

  it("builds, is ready, serves a sealed call over TCP with its first token, stops in good order and leaves nothing", {
    timeout: 400_000 * patience,
  }, async ({ skip }) => {
    if (!engine.ok) return skip(engine.reason)
    const { socket } = engine
    const lines = documented()
    const typed = async (line = "", at = socket): Promise<string> => {
      const ended = await run(at, "sh", ["-c", line])
      if (ended.status !== 0) throw new Error(`${line}: ${ended.said}`)
      return ended.stdout
    }
    await typed(lines[0])
    await typed(lines[1], translator === undefined ? socket : join(folder, "docker.sock"))
    const at = `http://127.0.0.1:${port}`
    expect(lines.slice(3)).toEqual([`curl "${at}/healthz?ready"`])
    const health = async (): Promise<unknown> => {
      try {
        return await (await fetch(`${at}/healthz?ready`)).json()
      } catch {
        return (await composeAt(socket, ["logs"])).said
      }
    }
    await expect.poll(health, { timeout: 180_000 * patience }).toMatchObject({ live: true, ready: true })
    const inside = (...words: readonly string[]) => done(["exec", "-T", "caisson", ...words], socket)
    const token = (await typed(lines[2])).trim()
    const call = async (authorization: string): Promise<readonly [number, unknown]> => {
      const body = JSON.stringify({
        tool: "json.query",
        input: { filter: ".a", document: { a: 41 } },
        workspace: "/srv/workspaces",
      })
      const headers = { authorization, "content-type": "application/json" }
      const answer = await fetch(`${at}/v1/calls`, { method: "POST", headers, body })
      return [answer.status, await answer.json()]
    }
    const [status, told] = await call(`Bearer ${token}`)
    if (status !== 200) throw new Error(JSON.stringify(told))
    expect(told).toMatchObject({ ok: true, value: [41] })
    expect((await call("Bearer csn_none"))[0]).toBe(401)
    // As the user of its own, who has no right and can gain none.
    const rights = await inside("cat", "/proc/1/status")
    expect(rights).toMatch(/^Uid:\s+7433\s+7433\s+7433\s+7433$/m)
    for (const set of ["Inh", "Prm", "Eff", "Bnd", "Amb"]) expect(rights).toMatch(new RegExp(`^Cap${set}:\\s+0+$`, "m"))
    expect(rights).toMatch(/^NoNewPrivs:\s+1$/m)
    expect((await composeAt(socket, ["exec", "-T", "caisson", "mkdir", "/opt/caisson/deploy/x"])).status).not.toBe(0)
    const { said } = await composeAt(socket, ["logs", "--no-color"])
    expect(said).toContain(`the daemon listens on ${at}`)
    expect(said).not.toContain("csn_")
    await done(["stop"], socket)
    const [stopped] = ((await leftBy(socket)) as { containers: { Status: string }[] }).containers
    expect(stopped?.Status).toMatch(/^Exited \(0\)/)
    await done(["down", "--volumes", "--rmi", "all"], socket)
    expect(await leftBy(socket)).toEqual({ containers: [], volumes: [], images: [] })
  })
})
