/**
 * Calls of real client programs, each against a real server: the declared name is reached with nothing configured
 * in the sandbox, and every other name is refused at once and named in the envelope.
 */
import { readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { postgresThere, startPostgres, startRedis } from "../support/servers/databases.ts"
import { describeNeeding } from "../support/needing.ts"
import { ensurePrograms } from "../support/servers/packages.ts"
import type { Running } from "../support/servers/process.ts"
import { type RunningSshd, startSshd } from "../support/servers/sshd.ts"
import { startWeb, type WebServer } from "../support/servers/web.ts"
import { openWorld, type World } from "./host-world.ts"

const manifests = [join(import.meta.dirname, "../../fixtures/clients")]
const openClients = (services: Readonly<Record<string, number>>): Promise<World> => {
  const lines = Object.entries(services).map(([name, port]) => `    ${name}: "127.0.0.1:${port}"\n`)
  return openWorld(`egress:\n  services:\n${lines.join("")}`, { manifests })
}
const denies = (target: string) => ({
  denied: expect.arrayContaining([
    expect.objectContaining({ layer: "egress", target: expect.stringContaining(target) }),
  ]),
})

describe("curl", () => {
  let web: WebServer
  let world: World
  beforeAll(async () => {
    web = await startWeb()
    world = await openClients({ "web.test": web.httpsPort, "plain.test": web.httpPort })
    writeFileSync(join(world.workspace, "ca.pem"), web.caPem)
  })
  afterAll(async () => {
    await world[Symbol.asyncDispose]()
    await web[Symbol.asyncDispose]()
  })
  for (const [tool, how] of [
    ["client.fetch", "with the proxy variables"],
    ["client.fetch-direct", "without the proxy variables"],
  ] as const) {
    for (const url of ["https://web.test/a", "http://plain.test/b"]) {
      it(`fetches ${url} ${how}`, async () => {
        const envelope = await world.call(tool, { url })
        expect(envelope).toMatchObject({
          ok: true,
          value: expect.stringContaining(`served ${new URL(url).pathname}`),
          denied: [],
        })
        expect(web.seen.at(-1)).toMatchObject({ host: new URL(url).host })
      })
    }
    it(`is refused another port of a declared host ${how}, which is named by host and port`, async () => {
      const envelope = await world.call(tool, { url: "http://plain.test:8081/" })
      expect(envelope).toMatchObject({ ok: false, denied: [{ reason: "port_not_allowed", target: "plain.test:8081" }] })
    })
    for (const url of ["https://evil.test/", "http://evil.test/", "https://plain.test/", "http://93.184.216.34/"]) {
      it(`is refused ${url} ${how}`, async () => {
        const before = web.seen.length
        const envelope = await world.call(tool, { url })
        expect(envelope).toMatchObject({
          ok: false,
          ...denies(new URL(url).hostname.replace(/^93.*/, "93.184.216.34")),
        })
        expect(web.seen.length).toBe(before)
      })
    }
  }
})

const noGit = ensurePrograms({ git: "git", "git-http-backend": "git" })
describeNeeding("git over https", noGit, () => {
  let web: WebServer
  let world: World
  beforeAll(async () => {
    web = await startWeb()
    world = await openClients({ "git.test": web.httpsPort })
    writeFileSync(join(world.workspace, "ca.pem"), web.caPem)
  })
  afterAll(async () => {
    await world[Symbol.asyncDispose]()
    await web[Symbol.asyncDispose]()
  })
  it("is refused another host, which the envelope names", async () => {
    expect(await world.call("client.clone", { url: "https://evil.test/repo.git" }, { approved: true })).toMatchObject({
      ok: false,
      ...denies("evil.test"),
    })
  })
  it("clones from a declared host, and the clone is in the workspace", async () => {
    const envelope = await world.call("client.clone", { url: "https://git.test/repo.git" }, { approved: true })
    expect(envelope).toMatchObject({ ok: true, denied: [] })
    expect(readFileSync(join(world.workspace, "clone/hello.txt"), "utf8")).toBe("from git\n")
  })
})

const noPostgres =
  ensurePrograms({ psql: "postgresql-client" }) ??
  (postgresThere()
    ? undefined
    : (ensurePrograms({ pg_ctlcluster: "postgresql" }) ??
      (postgresThere() ? undefined : "no PostgreSQL server: apt-get install -y postgresql")))
describeNeeding("psql against a real PostgreSQL", noPostgres, () => {
  let server: Running
  let world: World
  beforeAll(async () => {
    server = await startPostgres()
    world = await openClients({ "db.test": server.port })
  })
  afterAll(async () => {
    await world?.[Symbol.asyncDispose]()
    await server?.[Symbol.asyncDispose]()
  })
  it("gets an answer from a declared tcp:// host by its name alone", async () => {
    expect(
      await world.call("client.query", {
        host: "db.test",
        sql: "select count(*), sum(n) from generate_series(1,1000) as n",
      }),
    ).toMatchObject({ ok: true, value: "1000|500500\n", denied: [] })
  })
  it("is refused another name at once, which the envelope names", async () => {
    expect(await world.call("client.query", { host: "other.test", sql: "select 1" })).toMatchObject({
      ok: false,
      ...denies("other.test"),
    })
  })
  it("is refused the server's own address", async () => {
    expect(await world.call("client.query", { host: "127.0.0.1", sql: "select 1" })).toMatchObject({
      ok: false,
      ...denies("127.0.0.1:5432"),
    })
  })
})

const noRedis = ensurePrograms({ "redis-server": "redis-server", "redis-cli": "redis-tools" })
describeNeeding("redis-cli against a real Redis", noRedis, () => {
  let server: Running
  let world: World
  beforeAll(async () => {
    server = await startRedis()
    world = await openClients({ "cache.test": server.port })
  })
  afterAll(async () => {
    await world?.[Symbol.asyncDispose]()
    await server?.[Symbol.asyncDispose]()
  })
  it("counts on a declared tcp:// host by its name alone", async () => {
    expect(await world.call("client.incr", { host: "cache.test", key: "n", by: 5 })).toMatchObject({
      ok: true,
      value: "5\n",
      denied: [],
    })
    expect(await world.call("client.incr", { host: "cache.test", key: "n", by: 2 })).toMatchObject({
      ok: true,
      value: "7\n",
    })
  })
  it("is refused another name at once, which the envelope names", async () => {
    expect(await world.call("client.incr", { host: "other.test", key: "n", by: 1 })).toMatchObject(denies("other.test"))
  })
})

const noSshd = ensurePrograms({ sshd: "openssh-server", ssh: "openssh-client" })
describeNeeding("ssh against a real sshd", noSshd, () => {
  let server: RunningSshd
  let world: World
  beforeAll(async () => {
    server = await startSshd()
    world = await openClients({ "shell.test": server.port })
    writeFileSync(join(world.workspace, "id"), server.clientKey, { mode: 0o600 })
    writeFileSync(join(world.workspace, "known"), server.knownHost("shell.test"))
  })
  afterAll(async () => {
    await world?.[Symbol.asyncDispose]()
    await server?.[Symbol.asyncDispose]()
  })
  it("runs a command on a declared tcp:// host by its name alone", async () => {
    expect(
      await world.call("client.shell", { host: "shell.test", user: server.user, command: "do this" }),
    ).toMatchObject({ ok: true, value: "forced: do this\n", denied: [] })
  })
  it("is refused another name at once, which the envelope names", async () => {
    expect(await world.call("client.shell", { host: "other.test", user: server.user, command: "x" })).toMatchObject({
      ok: false,
      ...denies("other.test"),
    })
  })
})
