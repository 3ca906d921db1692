/** A service that gives out tokens, rotates them and detects their reuse, and a host with drivers of each kind for it. */
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { join } from "node:path"
import { type HostOptions, processCaller } from "../../src/host/index.ts"
import type { Person } from "../../src/host/person.ts"
import { openWorld, type World } from "./host-world.ts"

const fixtures = join(import.meta.dirname, "../../fixtures/logins-kinds")

interface Desk extends AsyncDisposable {
  readonly port: number
  /** each request, with its status */
  readonly asked: string[]
  /** whether it publishes where its users log in, and how */
  publishes: "oauth" | "host-file" | "nothing"
  /** the access token of now, for who copies it from a page */
  token(): string
  /** what was given out, for whoever looks for it elsewhere */
  readonly given: { readonly tokens: string[]; readonly assertions: string[]; readonly claims: string[] }
  /** bodies of requests for a person's approval */
  readonly claims: string[]
  /** what requests for data came with, whether it was taken or not */
  readonly shown: string[]
  /** each exchange brings another assertion, and the one before is not taken any more */
  rotates: boolean
  /** the access tokens of now are not taken any more */
  expire(): void
  revoke(): void
}

const METADATA = {
  issuer: "http://id.test",
  token_endpoint: "http://id.test/token",
  device_authorization_endpoint: "http://id.test/device",
  revocation_endpoint: "http://id.test/revoke",
  agent_auth: { identity_endpoint: "http://id.test/agent/identity" },
}

export const openDesk = async (): Promise<Desk> => {
  let number = 0
  let access = ""
  let refresh = ""
  let dead = false
  const asked: string[] = []
  const given = { tokens: [] as string[], assertions: [] as string[], claims: [] as string[] }
  const claims: string[] = []
  const shown: string[] = []
  let assertion = ""
  let polls = 0
  const give = (): object => {
    number += 1
    access = `access-${number}-7d1b`
    refresh = `refresh-${number}-9c4e`
    given.tokens.push(access)
    return { access_token: access, refresh_token: refresh, token_type: "bearer", expires_in: 3600 }
  }
  const assert = (): object => {
    assertion = `assertion-${given.assertions.length + 1}-5e2a`
    given.assertions.push(assertion)
    const { refresh_token: _none, ...rest } = give() as { refresh_token: string }
    return { ...rest, identity_assertion: assertion, assertion_expires_in: 86_400 }
  }
  /** As the public text of auth.md has it. */
  const approve = (form: URLSearchParams): readonly [number, object] => {
    if (form.get("grant_type")?.endsWith(":jwt-bearer") === true) {
      if (dead || form.get("assertion") !== assertion || assertion === "") return [400, { error: "invalid_grant" }]
      return [200, desk.rotates ? assert() : { ...give(), refresh_token: undefined }]
    }
    if (form.get("claim_token") !== given.claims.at(-1)) return [400, { error: "invalid_grant" }]
    polls += 1
    if (polls === 1) return [400, { error: "authorization_pending" }]
    dead = false
    return [200, assert()]
  }
  const grant = (form: URLSearchParams): readonly [number, object] => {
    if (/:(?:jwt-bearer|claim)$/.test(form.get("grant_type") ?? "")) return approve(form)
    if (form.get("device_code") === "dev-1") {
      dead = false
      return [200, give()]
    }
    // A refresh token that was used before ends the whole family.
    if (form.get("refresh_token") !== refresh) dead = true
    return dead ? [400, { error: "invalid_grant" }] : [200, give()]
  }
  const places = (path: string): object | undefined => {
    if (desk.publishes === "host-file") return path === "/.well-known/agentproto-host.json" ? METADATA : undefined
    if (desk.publishes === "nothing") return undefined
    if (path === "/.well-known/oauth-protected-resource")
      return { resource: "http://id.test", authorization_servers: ["http://id.test"] }
    return path === "/.well-known/oauth-authorization-server" ? METADATA : undefined
  }
  const refused: Readonly<Record<string, readonly [number, Record<string, string>]>> = {
    "/status": [419, {}],
    "/header": [200, { "x-session": "ended" }],
  }
  const answer = (
    path: string,
    token: string,
    body: string,
  ): readonly [number, object | string, Record<string, string>?] => {
    if (path.startsWith("/.well-known/")) {
      const place = places(path)
      return place === undefined ? [404, {}] : [200, place]
    }
    if (path === "/device")
      return [
        200,
        {
          device_code: "dev-1",
          user_code: "WXYZ-1234",
          verification_uri: "http://id.test/enter",
          expires_in: 60,
          interval: 1,
        },
      ]
    if (path === "/agent/identity") {
      claims.push(body)
      polls = 0
      given.claims.push(`claim-${given.claims.length + 1}-8f3d`)
      const claim = { user_code: "ABCD-1234", verification_uri: "http://id.test/approve", expires_in: 60, interval: 0 }
      return [200, { registration_id: "reg-1", claim_token: given.claims.at(-1), claim }]
    }
    if (path === "/revoke") {
      if (body.includes(assertion)) dead = true
      return [200, {}]
    }
    if (path === "/token") return grant(new URLSearchParams(body))
    const isIn = token === access && access !== "" && !dead
    if (path === "/renew") {
      // Whose login is gone is not renewed; one that is merely over is.
      return dead ? [403, {}] : [200, give()]
    }
    if (isIn)
      return path === "/me"
        ? [200, { login: "alice" }]
        : [200, path === "/data" ? `data ${number}` : { said: `data ${number}` }]
    const [status, headers] = refused[path] ?? [401, {}]
    return [status, {}, headers]
  }
  const desk: Desk = {
    port: 0,
    asked,
    given,
    claims,
    shown,
    rotates: false,
    publishes: "oauth",
    token: () => {
      give()
      return access
    },
    expire: () => void (access = ""),
    revoke: () => {
      access = ""
      dead = true
    },
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
  const server = createServer((request, response) => {
    const parts: Buffer[] = []
    request.on("data", (part: Buffer) => parts.push(part))
    request.on("end", () => {
      const path = request.url ?? ""
      const token = (request.headers.authorization ?? "").replace(/^Bearer /, "")
      const [status, body, headers = {}] = answer(path, token, Buffer.concat(parts).toString())
      asked.push(`${path} ${status}`)
      if (token !== "") shown.push(token)
      const isText = typeof body === "string"
      const type = isText ? {} : { "content-type": "application/json" }
      response.writeHead(status, { ...type, ...headers }).end(isText ? body : JSON.stringify(body))
    })
  })
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  return Object.assign(desk, { port: (server.address() as AddressInfo).port })
}

export interface KindsWorld extends World {
  readonly desk: Desk
  readonly pages: string[]
  login(driver: string, person?: Person): ReturnType<World["host"]["login"]>
  read(driver: string): ReturnType<World["call"]>
}

/** `folder`: where the manifests lie; the fixtures' own, which the operator vouches for, where it is absent. */
export const openKinds = async (options: HostOptions = {}, more = "", folder = fixtures): Promise<KindsWorld> => {
  const desk = await openDesk()
  const config = `egress: { services: { id.test: "127.0.0.1:${desk.port}" } }\nmanifests: ["${folder}"]\n${more}`
  const world = await openWorld(config, { manifests: [], ...options })
  const pages: string[] = []
  const person: Person = { open: ({ url, code }) => void pages.push(`${url} ${code}`) }
  return {
    ...world,
    desk,
    pages,
    login: (driver, who = person) =>
      world.host.login(driver, { caller: processCaller("alice"), workspace: world.workspace, person: who }),
    read: (driver) => world.call("kinds.read", {}, { driver }),
    async [Symbol.asyncDispose]() {
      await world[Symbol.asyncDispose]()
      await desk[Symbol.asyncDispose]()
    },
  }
}
