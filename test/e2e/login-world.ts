/**
 * A service that gives out tokens, rotates them and detects their reuse, and a host whose fixture driver logs in to it.
 * On loopback alone.
 */
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { cpSync } from "node:fs"
import { join } from "node:path"
import { PassThrough } from "node:stream"
import type { LoginReport, Person } from "../../src/host/index.ts"
import { openWorld, type World } from "./host-world.ts"

const loginFixtures = join(import.meta.dirname, "../../fixtures/logins")

export interface AuthService extends AsyncDisposable {
  readonly port: number
  /** by path, with what came of each */
  readonly asked: string[]
  /** tokens that were given out, for whoever looks for them elsewhere */
  readonly given: string[]
  /** the access tokens of now are not taken any more */
  expire(): void
  /** nobody is given the data, and nobody else is told anything of it; `known`: but who they are */
  refuse(known: boolean): void
  /** nor are the refresh tokens */
  revoke(): void
  /** Nobody new is let in. */
  close(): void
  /** asked before each answer */
  before: (path: string) => Promise<void>
}

export const openAuthService = async (): Promise<AuthService> => {
  let number = 0
  let access = ""
  let refresh = ""
  let dead = false
  let refuses = false
  let isKnown = true
  const asked: string[] = []
  const given: string[] = []
  const next = (): string => {
    number += 1
    access = `access-token-${number}`
    refresh = `refresh-token-${number}`
    given.push(access, refresh)
    return `${access} ${refresh}`
  }
  const answer = (path: string, token: string): readonly [number, string] => {
    if (path === "/token?code=WXYZ-1234") {
      dead = false
      return [200, next()]
    }
    if (path.startsWith("/token")) return [400, "no"]
    if (path === "/refresh") {
      // A refresh token that was used before ends the whole family.
      if (token !== refresh) dead = true
      return dead || token === "" ? [400, "invalid_grant"] : [200, next()]
    }
    if (token !== access || token === "" || dead) return [401, "who are you"]
    if (refuses && (path !== "/whoami" || !isKnown)) return [401, "who are you"]
    return [200, path === "/whoami" ? "alice@auth.test" : "the data"]
  }
  const service: AuthService = {
    port: 0,
    asked,
    given,
    expire: () => void (access = "expired"),
    refuse: (known) => {
      refuses = true
      isKnown = known
    },
    revoke: () => {
      access = "expired"
      dead = true
    },
    close: () => void server.close(),
    before: async () => undefined,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      if (server.listening) await new Promise((resolve) => server.close(resolve))
    },
  }
  const server = createServer((request, response) => {
    const path = request.url ?? ""
    void service.before(path).then(() => {
      const [status, body] = answer(path, (request.headers.authorization ?? "").replace(/^Bearer /, ""))
      asked.push(`${path} ${status}`)
      response.writeHead(status).end(body)
    })
  })
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  return Object.assign(service, { port: (server.address() as AddressInfo).port })
}

/** The config that leads auth.test to the service, and vouches for nothing. */
export const configFor = ({ port }: Pick<AuthService, "port">, more = ""): string =>
  `egress: { services: { "auth.test": "127.0.0.1:${port}" } }\n${more}`

/** Types an answer as soon as the program asks, and hears what it prints. */
export const typist = (answer: string): { readonly person: Person; readonly screen: () => string } => {
  const input = new PassThrough()
  let screen = ""
  let typed = false
  return {
    screen: () => screen,
    person: {
      open: () => undefined,
      answer: async () => answer,
      terminal: {
        columns: 80,
        rows: 24,
        input,
        onResize: () => ({ [Symbol.dispose]: () => undefined }),
        show: (bytes) => {
          screen += Buffer.from(bytes).toString("utf8")
          if (typed || !screen.includes("Code: ")) return
          typed = true
          input.write(`${answer}\r`)
        },
      },
    },
  }
}

export interface LoginWorld extends World {
  readonly service: AuthService
  readonly manifests: string
  login(code?: string): Promise<LoginReport>
}

export const openLoginWorld = async (change: (manifests: string) => void = () => undefined): Promise<LoginWorld> => {
  const service = await openAuthService()
  const world = await openWorld(configFor(service))
  await world.host.close()
  const manifests = join(world.folder, "manifests")
  cpSync(loginFixtures, manifests, { recursive: true })
  change(manifests)
  const { createHost, processCaller } = await import("../../src/host/index.ts")
  const host = await createHost({
    data: world.data,
    manifests: [manifests],
    config: join(world.folder, "caisson.yaml"),
  })
  const caller = processCaller("alice")
  return {
    ...world,
    host,
    service,
    manifests,
    call: (tool, input, { caller: who = caller, approved = true, signal, ...more } = {}) =>
      host.call(
        { tool, input: input as never, workspace: world.workspace, ...more },
        { caller: who, approved, ...(signal === undefined ? {} : { signal }) },
      ),
    login: (code = "WXYZ-1234") =>
      host.login("signer", { caller, workspace: world.workspace, person: typist(code).person }),
    async [Symbol.asyncDispose]() {
      await host.close()
      await service[Symbol.asyncDispose]()
      await world[Symbol.asyncDispose]()
    },
  }
}
