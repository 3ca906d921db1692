import { existsSync } from "node:fs"
import { gzipSync } from "node:zlib"
import { expect, it } from "vitest"
import { tarOf, type TarMember } from "../support/archives.ts"
import type { DownloadServer } from "../support/servers/download-server.ts"
import { leftIn, openMethodsWorld, program } from "./methods-world.ts"

const WRONG = "60303ae22b998861bce3b28f33eec1be758a213c86c93c076dbe9f558c11c752"
const nothing = { builds: [], layers: [] }

const method = (server: DownloadServer, path: string, sha256: string | undefined): string =>
  `{ method: download, url: "${server.url(path)}", extract_bin: tool${sha256 === undefined ? "" : `, verify_sha256: ${sha256}`} }`

it("a file that is not what its hash says ends the installation, whatever other methods there are", async () => {
  await using made = await openMethodsWorld({
    drivers: (server) => {
      const right = server.serve("/tool", program())
      return [{ id: "tool", install: `[${method(server, "/tool", WRONG)}, ${method(server, "/tool", right)}]` }]
    },
  })
  expect(await made.world.host.install("tool")).toMatchObject({
    ok: false,
    error: { code: "install_failed", details: { reason: "hash_mismatch", expected: WRONG } },
  })
  expect(leftIn(made.world.data)).toEqual(nothing)
})

it("methods that fail or are not possible here give way to the next, in their order, and each is named where none works", async () => {
  await using made = await openMethodsWorld({
    drivers: (server) => {
      const hash = server.serve("/tool", program())
      const others = `{ method: brew, package: tool }, { method: teleport, to: here }, ${method(server, "/gone", WRONG)}`
      return [
        { id: "tool", install: `[${others}, ${method(server, "/tool", hash)}]` },
        { id: "none", install: `[${others}]` },
      ]
    },
  })
  const told: string[] = []
  const report = await made.world.host.install("tool", { onProgress: ({ phase }) => void told.push(phase) })
  expect(report).toMatchObject({ ok: true, version: "1.2.3" })
  expect(told).toEqual(expect.arrayContaining(["passing over", "downloading", "unpacking", "freezing", "done"]))
  expect(await made.world.host.install("none")).toMatchObject({
    ok: false,
    error: {
      code: "install_failed",
      message: expect.stringMatching(
        /brew: Homebrew.*teleport: unknown install method.*download: .*answered 404/,
      ) as string,
    },
  })
})

it("what comes without a hash is refused, unless the operator allows it", async () => {
  const drivers = (server: DownloadServer) => {
    server.serve("/tool", program())
    return [{ id: "tool", install: `[${method(server, "/tool", undefined)}]` }]
  }
  await using strict = await openMethodsWorld({ drivers })
  expect(await strict.world.host.install("tool")).toMatchObject({
    ok: false,
    error: { code: "install_failed", message: expect.stringContaining("without a hash") as string },
  })
  expect(strict.server.asked).toEqual([])
  await using lax = await openMethodsWorld({ drivers, install: "without_hash: allow" })
  expect(await lax.world.host.install("tool")).toMatchObject({ ok: true, version: "1.2.3" })
})

it("a download that breaks off goes on from where it was, and is checked as a whole", async () => {
  const bytes = Buffer.from(program() + "#".repeat(2 ** 21))
  await using made = await openMethodsWorld({
    drivers: (server) => [
      { id: "tool", install: `[${method(server, "/tool", server.serve("/tool", { bytes, breakAfter: 700_000 }))}]` },
    ],
  })
  expect(await made.world.host.install("tool")).toMatchObject({ ok: true, version: "1.2.3" })
  const { asked } = made.server
  expect(asked.some(({ range, ifRange }) => /^bytes=[1-9]\d+-$/.test(range ?? "") && ifRange !== undefined)).toBe(true)
})

it.each<[string, (server: DownloadServer) => void, RegExp]>([
  [
    "sends a byte now and then, and is never silent for long",
    (server) =>
      server.answer("/x", (request, response) => {
        response.writeHead(200, { "content-length": 1_000_000 })
        const drip = setInterval(() => response.write("x"), 20)
        request.socket.once("close", () => clearInterval(drip))
      }),
    /took longer than 1000 ms/,
  ],
  [
    "falls silent",
    (server) => void server.serve("/x", { bytes: Buffer.alloc(10), stallAfter: 0 }),
    /was silent for 300 ms/,
  ],
  [
    "never sends more",
    (server) => void server.serve("/x", { bytes: Buffer.alloc(10), breakAfter: 0 }),
    /broke off|no proper answer/,
  ],
  [
    "redirects to a private address",
    (server) =>
      server.answer("/x", (_, response) => void response.writeHead(302, { location: "https://10.0.0.1/x" }).end()),
    /10\.0\.0\.1/,
  ],
  [
    "redirects to an address without TLS",
    (server) =>
      server.answer("/x", (_, response) => void response.writeHead(302, { location: "http://files.test/y" }).end()),
    /no https address/,
  ],
  [
    "redirects without end",
    (server) => server.answer("/x", (_, response) => void response.writeHead(302, { location: "/x" }).end()),
    /more than 5 times/,
  ],
])("a server that %s ends in install_failed, with nothing left", async (_, prepare, message) => {
  await using made = await openMethodsWorld({
    // Others wait for an answer as long as it takes.
    install: message.source.includes("silent")
      ? "stall_ms: 300"
      : message.source.includes("longer")
        ? "download_ms: 1000"
        : "",
    drivers: (server) => [{ id: "tool", install: `[${method(server, "/x", WRONG)}]` }],
  })
  prepare(made.server)
  expect(await made.world.host.install("tool")).toMatchObject({
    ok: false,
    error: { code: "install_failed", message: expect.stringMatching(message) as string },
  })
  expect(leftIn(made.world.data)).toEqual(nothing)
})

it("members that lead out, are links out, devices, setuid, or a bomb: nothing of the archive is there", async () => {
  const hostile: readonly [TarMember, RegExp][] = [
    [{ name: "../../caisson-out", content: "1" }, /leads out/],
    [{ name: "/tmp/caisson-out", content: "1" }, /absolute/],
    [{ name: "l", type: "2", link: "/etc/passwd" }, /leads out/],
    [{ name: "h", type: "1", link: "../../etc/passwd" }, /leads out|is no file/],
    [{ name: "d", type: "3" }, /device/],
    [{ name: "s", mode: 0o4755 }, /setuid/],
    [{ name: "TOOL" }, /case alone/],
    [{ name: "a\u001b[2J" }, /control characters/],
    [{ name: "big", content: Buffer.alloc(9 * 2 ** 20) }, /more than 8 MiB/],
  ]
  await using made = await openMethodsWorld({
    install: "disk_mb: 8",
    drivers: (server) =>
      hostile.map(([member], index) => {
        const archive = gzipSync(tarOf([{ name: "tool", content: program() }, member]))
        return { id: `tool-${index}`, install: `[${method(server, `/${index}`, server.serve(`/${index}`, archive))}]` }
      }),
  })
  for (const [index, [, message]] of hostile.entries()) {
    expect(await made.world.host.install(`tool-${index}`)).toMatchObject({
      ok: false,
      error: { code: "install_failed", message: expect.stringMatching(message) as string },
    })
    expect(leftIn(made.world.data)).toEqual(nothing)
  }
  expect(existsSync("/tmp/caisson-out")).toBe(false)
})

it("a version outside the range is installed anew once, and told with both versions", async () => {
  await using made = await openMethodsWorld({
    drivers: (server) => [
      { id: "tool", install: `[${method(server, "/tool", server.serve("/tool", program("0.9.0")))}]` },
    ],
  })
  expect(await made.world.host.install("tool")).toMatchObject({
    ok: false,
    error: { code: "version_mismatch", message: expect.stringMatching(/0\.9\.0 .*\^1\.2\.0/) as string },
  })
  expect(made.server.asked).toHaveLength(2)
})
