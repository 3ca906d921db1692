/** A real OpenID provider on a loopback port: device codes, pages with PKCE, rotation with reuse detection, revocation. */
import { once } from "node:events"
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http"
import { createServer as createHttps } from "node:https"
import type { AddressInfo } from "node:net"
import { Provider } from "oidc-provider"
import { request } from "undici"

export interface OidcServer extends AsyncDisposable {
  readonly port: number
  readonly issuer: string
  /** every request to the token's endpoint: its grant, and what it came to */
  readonly grants: { readonly type: string; readonly status: number }[]
  /** the same provider over TLS, where it has a certificate; its pages stay on `port` for a person's browser */
  readonly tlsPort: number | undefined
  /** answers everything with this where it is set */
  status: number | undefined
  /** the life of access tokens that are given out from now on */
  accessTokenSeconds: number
  /** tokens that were given out, for whoever looks for them elsewhere */
  readonly given: string[]
  /** told when the token's endpoint is asked, and when it has given something out, which the client does not have yet */
  onToken: (moment: "asked" | "given") => void
}

export interface OidcOptions {
  /** the name under which it is spoken to, on port 80, by whoever maps it; absent: its loopback address */
  readonly name?: string
  readonly accessTokenSeconds?: number
  /** for its name: it is spoken to over TLS then */
  readonly certificate?: { readonly cert: string; readonly key: string }
}

/** Its warnings are about being a development server, which it is. */
const quietly = <T>(work: () => T): T => {
  const { warn, info } = console
  console.warn = () => undefined
  console.info = () => undefined
  try {
    return work()
  } finally {
    Object.assign(console, { warn, info })
  }
}

const scopes = ["openid", "offline_access", "read", "https://www.googleapis.com/auth/drive"]

const providerOf = (issuer: string, seconds: () => number): Provider =>
  new Provider(issuer, {
    clients: [
      {
        client_id: "caisson",
        application_type: "native",
        token_endpoint_auth_method: "none",
        grant_types: ["authorization_code", "refresh_token", "urn:ietf:params:oauth:grant-type:device_code"],
        response_types: ["code"],
        redirect_uris: ["http://127.0.0.1/callback"],
      },
      {
        // As programs do that were written before public clients had to prove themselves: a secret that everybody knows.
        client_id: "rclone",
        client_secret: "known-to-everybody-5b1f0c2e9d",
        application_type: "native",
        grant_types: ["authorization_code", "refresh_token"],
        response_types: ["code"],
        redirect_uris: ["http://127.0.0.1:53682/"],
      },
      {
        client_id: "service",
        client_secret: "of-the-service-5b1f0c2e9d",
        grant_types: ["client_credentials"],
        response_types: [],
        redirect_uris: [],
      },
    ],
    scopes,
    findAccount: (_context, id) => ({ accountId: id, claims: () => ({ sub: id }) }),
    features: {
      deviceFlow: { enabled: true },
      clientCredentials: { enabled: true },
      revocation: { enabled: true, allowedPolicy: () => true },
      introspection: { enabled: true, allowedPolicy: () => true },
    },
    cookies: { keys: ["only for tests"] },
    rotateRefreshToken: true,
    issueRefreshToken: (_context, client, code) =>
      client.grantTypeAllowed("refresh_token") && (client.clientId === "rclone" || code.scopes.has("offline_access")),
    ttl: {
      AccessToken: seconds,
      ClientCredentials: seconds,
      RefreshToken: 86_400,
      DeviceCode: 600,
      AuthorizationCode: 60,
      Interaction: 600,
      Session: 600,
      Grant: 86_400,
      IdToken: 600,
    },
  })

export const startOidc = async ({
  name,
  accessTokenSeconds = 3600,
  certificate,
}: OidcOptions = {}): Promise<OidcServer> => {
  const server: Server = createServer()
  server.listen(0, "127.0.0.1")
  await once(server, "listening")
  const { port } = server.address() as AddressInfo
  const secure = certificate === undefined ? undefined : createHttps(certificate)
  if (secure !== undefined) await once(secure.listen(0, "127.0.0.1"), "listening")
  const issuer =
    name === undefined ? `http://127.0.0.1:${port}` : `${secure === undefined ? "http" : "https"}://${name}`
  const grants: { type: string; status: number }[] = []
  const running: OidcServer = {
    port,
    issuer,
    grants,
    tlsPort: secure === undefined ? undefined : (secure.address() as AddressInfo).port,
    status: undefined,
    accessTokenSeconds,
    given: [],
    onToken: () => undefined,
    [Symbol.asyncDispose]: async () => {
      for (const each of secure === undefined ? [server] : [server, secure]) {
        each.closeAllConnections()
        each.close()
        await once(each, "close")
      }
    },
  }
  const provider = quietly(() => providerOf(issuer, () => running.accessTokenSeconds))
  const answer = provider.callback()
  provider.on("grant.success", ({ oidc }) => {
    grants.push({ type: String(oidc.params?.["grant_type"]), status: 200 })
    running.onToken("given")
  })
  // What an opaque token is called is the token.
  provider.on("access_token.saved", ({ jti }) => running.given.push(jti))
  provider.on("refresh_token.saved", ({ jti }) => running.given.push(jti))
  const serve = (request: IncomingMessage, response: ServerResponse): void => {
    if (request.method === "POST" && request.url === "/token") running.onToken("asked")
    if (running.status === undefined) return void answer(request, response)
    response.writeHead(running.status).end()
  }
  server.on("request", serve)
  secure?.on("request", serve)
  return running
}

interface Answered {
  readonly status: number
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  readonly text: string
}
/** As a browser's own navigation, which Node's fetch is not. */
export const browse = async (url: URL | string, options: Parameters<typeof request>[1] = {}): Promise<Answered> => {
  const { statusCode, headers, body } = await request(url, options)
  return { status: statusCode, headers, text: await body.text() }
}

/** A person at a browser: keeps cookies, follows redirects to the provider, fills in each form as a person would. */
export class BrowsingPerson {
  readonly #cookies = new Map<string, string>()
  readonly #answers: Readonly<Record<string, string>>
  readonly #place: (url: URL) => { readonly url: URL; readonly host?: string }
  /** `mapped`: a name that means a port of this machine */
  constructor(
    mapped?: { readonly name: string; readonly port: number },
    answers = { login: "alice", password: "any" },
  ) {
    this.#answers = answers
    this.#place = (url) => {
      if (mapped === undefined || url.hostname !== mapped.name) return { url }
      return { url: new URL(`${url.pathname}${url.search}`, `http://127.0.0.1:${mapped.port}`), host: mapped.name }
    }
  }
  async #send(url: URL, form?: URLSearchParams): Promise<Answered> {
    const { url: place, host } = this.#place(url)
    const answered = await browse(place, {
      method: form === undefined ? "GET" : "POST",
      headers: {
        ...(host === undefined ? {} : { host }),
        cookie: [...this.#cookies].map(([name, value]) => `${name}=${value}`).join("; "),
        ...(form === undefined ? {} : { "content-type": "application/x-www-form-urlencoded" }),
      },
      ...(form === undefined ? {} : { body: form.toString() }),
    })
    for (const cookie of [answered.headers["set-cookie"] ?? []].flat()) {
      const [, name = "", value = ""] = /^([^=]+)=([^;]*)/.exec(cookie) ?? []
      if (value === "") this.#cookies.delete(name)
      else this.#cookies.set(name, value)
    }
    return answered
  }
  /** Goes on until a page has no form left, and answers with where it ended. */
  async visit(address: string): Promise<{ readonly url: URL; readonly text: string }> {
    let url = new URL(address)
    let response = await this.#send(url)
    for (let steps = 0; steps < 20; steps++) {
      const { location } = response.headers
      if (typeof location === "string") {
        url = new URL(location, url)
        response = await this.#send(url)
        continue
      }
      const { text } = response
      const [, tag = "", inside = ""] = /<form([^>]*)>([\s\S]*?)<\/form>/i.exec(text) ?? []
      const action = /action="([^"]+)"/.exec(tag)?.[1]
      if (action === undefined) return { url, text }
      const fields = new URLSearchParams()
      for (const [input] of inside.matchAll(/<input[^>]*>/gi)) {
        const name = /name="([^"]+)"/.exec(input)?.[1]
        if (name !== undefined && !/type="submit"/.test(input))
          fields.set(name, /value="([^"]*)"/.exec(input)?.[1] || (this.#answers[name] ?? ""))
      }
      url = new URL(action.replaceAll("&amp;", "&"), url)
      response = await this.#send(url, fields)
    }
    throw new Error("the pages have no end")
  }
}
