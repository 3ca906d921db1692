/** A program that speaks OAuth itself, and whose tokens stay out of its sandbox; the same on each backend. */
import { spawn } from "node:child_process"
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { createInterface } from "node:readline"
import { expect, it } from "vitest"
import { createCallAuthority } from "../../src/egress-proxy/tls/authority.ts"
import { removeFolder } from "../support/remove-folder.ts"
import { BrowsingPerson, type OidcServer, startOidc } from "../support/servers/oidc.ts"
import { openFolder } from "./host-world.ts"

export interface Answer {
  readonly ok: boolean
  readonly value?: unknown
  readonly error?: { readonly code: string; readonly message: string }
  readonly expires?: string
}
export interface TokenWorld extends AsyncDisposable {
  readonly server: OidcServer
  readonly folder: string
  readonly data: string
  readonly workspace: string
  login(user: string): Promise<Answer>
  logout(user: string): Promise<Answer>
  do(user: string, verb: string, value?: string): Promise<Answer>
  /** the host ends, and another takes over its data folder */
  restart(): Promise<void>
  stop(): Promise<void>
}

const fixture = join(import.meta.dirname, "../../fixtures/logins-tokens")

/** The same driver, whose manifest leaves it to an AUTH.md where its tokens come from. */
const describedBy =
  (authMd: string) =>
  (manifests: string): void => {
    const driver = join(manifests, "keeper", "DRIVER.md")
    const text = readFileSync(driver, "utf8").replace(/^metadata:\n {2}oauth: .*\n/m, "")
    if (/oauth/.test(text)) throw new Error("the fixture still names where its tokens come from")
    writeFileSync(driver, text)
    writeFileSync(join(manifests, "keeper", "AUTH.md"), authMd)
  }

/** `change`: made to a copy of the fixture. */
export const openTokenWorld = async (settings: string, change?: (manifests: string) => void): Promise<TokenWorld> => {
  const authority = createCallAuthority()
  const server = await startOidc({ name: "id.test", certificate: authority.leafFor("id.test") })
  const folder = openFolder()
  const [data, workspace, config, roots] = ["data", "work", "caisson.yaml", "roots.pem"].map((name) =>
    join(folder, name),
  ) as [string, string, string, string]
  mkdirSync(workspace)
  const manifests = change === undefined ? fixture : join(folder, "manifests")
  if (change !== undefined) cpSync(fixture, manifests, { recursive: true })
  change?.(manifests)
  writeFileSync(roots, authority.caPem)
  const at = `"127.0.0.1:${server.tlsPort}"`
  const text = `${settings}manifests: ["${manifests}"]\negress: { services: { id.test: ${at}, other.test: ${at} } }\n`
  writeFileSync(config, text, { mode: 0o600 })
  const start = () => {
    const child = spawn(process.execPath, [join(import.meta.dirname, "token-host.ts"), config, data, workspace], {
      env: { ...process.env, NODE_EXTRA_CA_CERTS: roots },
      stdio: ["pipe", "pipe", "inherit"],
    })
    return { child, lines: createInterface({ input: child.stdout })[Symbol.asyncIterator]() }
  }
  let host = start()
  const visits: Promise<unknown>[] = []
  const order = async (what: { readonly user: string }): Promise<Answer> => {
    host.child.stdin.write(`${JSON.stringify(what)}\n`)
    for (;;) {
      const { value, done } = await host.lines.next()
      if (done === true) throw new Error("the host is gone")
      const said = JSON.parse(value) as { readonly open?: string; readonly answer?: Answer }
      if (said.answer !== undefined) return said.answer
      const url = new URL(said.open ?? "")
      if (!url.searchParams.has("user_code")) continue
      const person = new BrowsingPerson({ name: "id.test", port: server.port }, { login: what.user, password: "any" })
      visits.push(person.visit(url.href.replace("https:", "http:")))
    }
  }
  const stop = async (): Promise<void> => {
    const { child } = host
    if (child.exitCode !== null) return
    const ended = new Promise((resolve) => child.once("close", resolve))
    child.stdin.end()
    await ended
  }
  return {
    server,
    folder,
    data,
    workspace,
    login: (user) => order({ user, ...{ login: true } }),
    logout: (user) => order({ user, ...{ logout: true } }),
    do: (user, verb, value = "") => order({ user, ...{ verb, with: value } }),
    stop,
    restart: async () => {
      await stop()
      host = start()
    },
    async [Symbol.asyncDispose]() {
      await stop()
      await Promise.allSettled(visits)
      await server[Symbol.asyncDispose]()
      authority.dispose()
      removeFolder(folder)
    },
  }
}

export const filesIn = (folder: string): readonly string[] =>
  readdirSync(folder, { recursive: true, withFileTypes: true }).flatMap((entry) =>
    entry.isFile() ? [readFileSync(join(entry.parentPath, entry.name), "latin1")] : [],
  )
const stateOf = ({ value }: Answer) => JSON.parse(String(value)) as Readonly<Record<string, string>>

export const tokenSuite = (backend: "namespace" | "docker", settings: () => string): void => {
  const setting = (): string => `backend: ${backend}\n${settings()}`

  it("logs in, calls and refreshes with placeholders alone; what was rotated is kept though the call is refused", async () => {
    await using world = await openTokenWorld(setting())
    const { server } = world
    const said: Answer[] = []
    const ask = async (verb: string, value?: string, user = "alice"): Promise<Answer> => {
      const answer = await world.do(user, verb, value)
      said.push(answer)
      return answer
    }
    const report = await world.login("alice")
    expect(report).toMatchObject({ ok: true, state: "authed" })
    expect(Date.parse(report.expires ?? "")).toBeGreaterThan(Date.now())
    expect(await ask("who")).toMatchObject({ ok: true, value: expect.stringContaining("alice") as string })
    const held = stateOf(await ask("state"))
    expect(held).toMatchObject({
      access_token: expect.stringMatching(/^caisson-access-1-[0-9a-f]{32}$/) as string,
      refresh_token: expect.stringMatching(/^caisson-refresh-1-[0-9a-f]{32}$/) as string,
      id_token: expect.stringMatching(/^caisson-id-1-[0-9a-f]{32}$/) as string,
    })
    expect(await ask("refresh")).toMatchObject({ ok: true, value: "200\n" })
    expect(await ask("who")).toMatchObject({ ok: true })
    // It rotated its token, wrote down nothing of it, and did what it may not.
    expect(await ask("refresh-and-write")).toMatchObject({ ok: false, error: { code: "undeclared_write" } })
    expect(existsSync(join(world.workspace, "undeclared.txt"))).toBe(false)
    await world.restart()
    expect(await ask("who")).toMatchObject({ ok: true })
    expect(await ask("refresh")).toMatchObject({ ok: true, value: "200\n" })
    expect(stateOf(await ask("state"))["refresh_token"]).toBe(held["refresh_token"])
    expect(server.grants.filter(({ type }) => type === "refresh_token")).toEqual(
      Array.from({ length: 3 }, () => ({ type: "refresh_token", status: 200 })),
    )
    // Declared, and not meant for the tokens: the same service under another name gets the placeholder.
    expect(await ask("elsewhere")).toMatchObject({ ok: true, value: expect.stringMatching(/^401/) as string })

    // Another user, signed in too, has no use for what was alice's.
    await world.login("bob")
    expect(await ask("use-access", held["access_token"], "bob")).toMatchObject({
      value: expect.stringMatching(/^401/) as string,
    })
    expect(await ask("use-refresh", held["refresh_token"], "bob")).toMatchObject({
      value: expect.stringContaining("invalid_grant") as string,
    })
    expect(await ask("who", "", "bob")).toMatchObject({ value: expect.stringContaining("bob") as string })
    expect(await ask("revoke")).toMatchObject({ ok: true, value: "200\n" })
    expect(await ask("use-refresh", held["refresh_token"])).toMatchObject({
      value: expect.stringContaining("invalid_grant") as string,
    })

    expect(server.given.length).toBeGreaterThan(8)
    await world.stop()
    const everywhere = [...filesIn(world.folder), JSON.stringify(said)]
    for (const token of server.given) expect(everywhere.filter((text) => text.includes(token))).toEqual([])
  }, 300_000)

  it("does not log in by itself at an issuer whose token endpoint nobody named: no token is given out", async () => {
    const says = (auth: string): string =>
      `---\nid: id\ndescription: d\napiBase: https://id.test\nauth: { flow: device-code, tokenStore: { keychain: k }, issuer: "https://id.test"${auth} }\n---\n`
    await using silent = await openTokenWorld(setting(), describedBy(says("")))
    expect(await silent.login("alice")).toMatchObject({
      ok: false,
      error: { message: expect.stringContaining("without the endpoint") as string },
    })
    expect([silent.server.given, silent.server.grants]).toEqual([[], []])
    await using named = await openTokenWorld(
      setting(),
      describedBy(says(', endpoints: { token: "https://id.test/token" }')),
    )
    expect(await named.login("alice")).toMatchObject({ ok: true, state: "authed" })
    expect(stateOf(await named.do("alice", "state"))["refresh_token"]).toMatch(/^caisson-refresh-/)
  }, 300_000)
}
