/**
 * Whole runs over the network, recorded once and replayed twice with the network closed and their servers gone, on either
 * backend: an npm install, a git clone, and a program that works with an HTTP API.
 */
import { execFileSync } from "node:child_process"
import { existsSync, mkdirSync, mkdtempSync, writeFileSync } from "node:fs"
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http"
import type { AddressInfo } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { describe, expect } from "vitest"
import { createHost, type Envelope, type RunRequest, writeSetDigest } from "../../src/host/index.ts"
import { testNeeding } from "../support/needing.ts"
import { removeFolder } from "../support/remove-folder.ts"
import { startPackageRegistry } from "../support/servers/package-registry.ts"
import { gitHttp } from "./git-http.ts"

const lacking = (program: string): string | undefined =>
  existsSync(`/usr/bin/${program}`)
    ? undefined
    : `there is no ${program} among the system's programs: \`apt-get install ${program}\``

/** What of a run has to be the same each time. */
type Same = (envelope: Envelope) => unknown
/** Git looks for a ~/.netrc as well, which is told. */
const onTheNetwork = ({ denied }: Envelope): Envelope["denied"] => denied.filter(({ layer }) => layer !== "fs")
const all: Same = ({ effects }) => writeSetDigest(effects)

interface Kept {
  readonly request: Omit<RunRequest, "workspace">
  /** `name: 127.0.0.1:port` lines of `egress.services` */
  readonly config: string
  /** how often it was asked */
  readonly asked: () => number
  readonly gone: () => Promise<void>
  readonly same?: Same
}

const closed = (server: Server): Promise<void> => {
  server.closeAllConnections()
  return new Promise((resolve) => void server.close(() => resolve()))
}
const listening = async (
  answer: (request: IncomingMessage, response: ServerResponse) => void,
): Promise<[Server, number]> => {
  const server = createServer(answer)
  await new Promise<void>((resolve) => void server.listen(0, "127.0.0.1", resolve))
  return [server, (server.address() as AddressInfo).port]
}

export const replaySuite = (backend: "namespace" | "docker", config = ""): void => {
  /** Recorded, its servers ended, replayed twice. */
  const keptAndReplayed = async (kept: Kept, files: Readonly<Record<string, string>>): Promise<Envelope> => {
    const folder = mkdtempSync(join(tmpdir(), "caisson-replay-run-"))
    const workspace = join(folder, "workspace")
    mkdirSync(workspace)
    for (const [name, text] of Object.entries(files)) writeFileSync(join(workspace, name), text)
    writeFileSync(join(folder, "caisson.yaml"), `${config}${kept.config}`)
    const host = await createHost({ data: join(folder, "data"), config: join(folder, "caisson.yaml"), backend })
    try {
      const tape = join(folder, "tape.jsonl")
      const run = (how: { readonly record?: string; readonly replay?: string }): Promise<Envelope> =>
        host.run({ ...kept.request, workspace, plan: true }, how)
      const recorded = await run({ record: tape })
      expect(recorded).toMatchObject({ ok: true })
      expect(onTheNetwork(recorded)).toEqual([])
      const asked = kept.asked()
      expect(asked).toBeGreaterThan(0)
      await kept.gone()
      const same = kept.same ?? all
      for (const again of [await run({ replay: tape }), await run({ replay: tape })]) {
        expect(onTheNetwork(again)).toEqual([])
        expect(again).toMatchObject({ ok: true, notes: [expect.stringMatching(/the network closed$/)] })
        expect(same(again)).toEqual(same(recorded))
      }
      expect(kept.asked()).toBe(asked)
      return recorded
    } finally {
      await host.close()
      removeFolder(folder)
    }
  }

  describe("recorded once and replayed twice, its servers gone, with equal effects and nobody asked", () => {
    testNeeding("an npm install", lacking("npm"), async () => {
      const registry = await startPackageRegistry()
      await registry.publish(
        {
          name: "left",
          version: "1.0.0",
          files: { "index.js": "module.exports = 1\n" },
          manifest: { dependencies: { right: "^2.0.0" } },
        },
        { name: "right", version: "2.1.0", files: { "lib/index.js": "module.exports = 2\n" } },
      )
      const quiet = ["--no-audit", "--no-fund", "--no-update-notifier"]
      const recorded = await keptAndReplayed(
        {
          request: {
            command: ["npm", "install", ...quiet, `--registry=http://registry.test:${registry.port}/`, "left"],
            allow: [`registry.test:${registry.port}`],
            write: ["node_modules/**", "package.json", "package-lock.json"],
            exec: ["node", "sh"],
          },
          config: registry.config,
          asked: () => registry.asked.length,
          gone: async () => registry[Symbol.asyncDispose](),
        },
        { "package.json": '{ "name": "own", "version": "1.0.0" }\n' },
      )
      expect(recorded.effects.map(({ path }) => path)).toContain("node_modules/right/lib/index.js")
    })

    const cloned = async (arguments_: readonly string[], write: readonly string[], same?: Same): Promise<Envelope> => {
      const source = mkdtempSync(join(tmpdir(), "caisson-replay-git-"))
      const git = (...words: string[]): string =>
        execFileSync("git", ["-c", "user.name=T", "-c", "user.email=t@example.com", "-C", source, ...words], {
          env: { ...process.env, GIT_CONFIG_GLOBAL: "/dev/null", GIT_CONFIG_NOSYSTEM: "1" },
          encoding: "utf8",
        })
      try {
        git("init", "-q", "-b", "main")
        for (const name of ["one", "two"]) {
          writeFileSync(join(source, `${name}.txt`), `${name}\n`.repeat(200))
          git("add", ".")
          git("commit", "-q", "-m", name)
        }
        git("clone", "-q", "--bare", source, join(source, "repo.git"))
        const serve = gitHttp(source)
        let asked = 0
        const [server, port] = await listening((request, response) => {
          asked += 1
          serve(request, response)
        })
        return await keptAndReplayed(
          {
            request: {
              command: ["git", "clone", "-q", ...arguments_, "http://git.test/repo.git", "repo"],
              allow: ["git.test:80"],
              write,
              exec: [],
            },
            config: `egress: { services: { git.test: "127.0.0.1:${port}" } }\n`,
            asked: () => asked,
            gone: () => closed(server),
            ...(same === undefined ? {} : { same }),
          },
          {},
        )
      } finally {
        removeFolder(source)
      }
    }

    /** Of git's own files these have the time in them, or say when files were written. */
    const withTimes = /^repo\/\.git\/(?:logs(?:\/|$)|index$)/

    const own = ["HEAD", "config", "packed-refs", "index", "shallow", "info/exclude", "description"]
    const write = ["repo", "repo/**", "repo/.git", ...own.map((path) => `repo/.git/${path}`)]

    testNeeding("a git clone, with all that git keeps", lacking("git"), async () => {
      const recorded = await cloned(["-c", "core.logAllRefUpdates=false", "--no-checkout", "--template="], write)
      const paths = recorded.effects.map(({ path }) => path)
      expect(paths).toEqual(expect.arrayContaining(["repo/.git/HEAD", "repo/.git/config", "repo/.git/packed-refs"]))
      expect(paths.some((path) => /^repo\/\.git\/objects\/pack\/.*\.pack$/.test(path))).toBe(true)
    })

    testNeeding(
      "a git clone with its files, but for where git itself writes down the time",
      lacking("git"),
      async () => {
        const recorded = await cloned(["--template="], write, ({ effects }) =>
          writeSetDigest(effects.filter(({ path }) => !withTimes.test(path))),
        )
        const paths = recorded.effects.map(({ path }) => path)
        expect(paths).toEqual(expect.arrayContaining(["repo/one.txt", "repo/two.txt", "repo/.git/index"]))
      },
    )

    testNeeding("a program that works with an HTTP API", lacking("python3"), async () => {
      let asked = 0
      const items = new Map<string, string>()
      // What it is told depends on what it told before, and on when.
      const [server, port] = await listening((request, response) => {
        asked += 1
        const path = request.url ?? "/"
        let body = ""
        request.on("data", (part: Buffer) => (body += part.toString()))
        request.on("end", () => {
          if (request.method === "POST") items.set(`${items.size + 1}`, body)
          const found = { items: [...items], at: Date.now(), path }
          response.writeHead(request.method === "POST" ? 201 : 200, { "content-type": "application/json" })
          response.end(JSON.stringify(found))
        })
      })
      const program = [
        "import json, urllib.request",
        "def ask(path, body=None):",
        "  data = None if body is None else json.dumps(body).encode()",
        "  with urllib.request.urlopen(urllib.request.Request('http://api.test' + path, data=data)) as answer:",
        "    return json.load(answer)",
        "open('before.json', 'w').write(json.dumps(ask('/items')))",
        "for name in ('bolt', 'nut', 'bolt'): ask('/items', {'name': name})",
        "open('after.json', 'w').write(json.dumps(ask('/items')))",
        "open('page.json', 'w').write(json.dumps(ask('/items?page=2')))",
      ].join("\n")
      const recorded = await keptAndReplayed(
        {
          request: { command: ["python3", "work.py"], allow: ["api.test:80"], write: ["*.json"], exec: [] },
          config: `egress: { services: { api.test: "127.0.0.1:${port}" } }\n`,
          asked: () => asked,
          gone: () => closed(server),
        },
        { "work.py": program },
      )
      expect(asked).toBe(6)
      expect(recorded.effects.map(({ path }) => path).toSorted()).toEqual(["after.json", "before.json", "page.json"])
    })
  })
}
