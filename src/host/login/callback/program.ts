/**
 * The way from a person's browser to what a program of a login waits with on the loopback of its own sandbox.
 *
 * Guarantees: while the login runs, the port that the program named is open on this machine's loopback, and only a browser
 * that came by the address which the person was given gets anything through it: that address is signed, bound to one
 * driver, workspace and user, good once and for a time, and leaves a cookie that no page and no program can read. Through
 * goes each request once that the program itself named: its own page, the answer at the path and with the state that it gave
 * its provider, and where its pages lead next. All else is refused, and told. A port that is not free stays closed.
 * Assumes: what is pasted comes from the person; it needs no cookie, and is held to the rest all the same.
 */
import { randomBytes } from "node:crypto"
import { once } from "node:events"
import type { IncomingMessage, Server, ServerResponse } from "node:http"
import type { Duplex } from "node:stream"
import { setTimeout as pause } from "node:timers/promises"
import type { LoginKey } from "../../store/store.ts"
import { loginLimits } from "../limits.ts"
import { askProgram, type ProgramAnswer, strangersPage } from "./forward.ts"
import { faultOf, type Named, namedIn, sameText, type Take } from "./named.ts"
import { callbackServer, closeServer, isNavigation, page, pageHeaders, type RefusedCallback } from "./page.ts"
import { CallbackTokens } from "./tokens.ts"

/** A connection to a port inside, where something of the program's listens. */
export type Reach = (port: number) => Promise<Duplex | undefined>

interface ProgramCallbackOptions {
  readonly key: LoginKey
  readonly forMs: number
  readonly reach: Reach
  readonly refused: (why: RefusedCallback) => void
}

/** `through`: leads to the page, and lets its answer back in. `taken`: its port is not free here. */
export type Brought =
  | { readonly way: "none" }
  | { readonly way: "open"; readonly port: number; readonly through: string }
  | { readonly way: "taken"; readonly port: number }

/** What became of an address that a person pasted. */
type Pasted = { readonly took: false; readonly why: RefusedCallback } | { readonly took: true; readonly location?: URL }

interface ProgramCallback extends AsyncDisposable {
  bring(address: string): Promise<Brought>
  paste(address: string): Promise<Pasted>
  /** aborted once an answer with a state went through */
  readonly answered: AbortSignal
}

const ENTRY = "/caisson/"
type Through =
  | { readonly ok: true; readonly answer: ProgramAnswer }
  | { readonly ok: false; readonly why: RefusedCallback }
const no = (why: RefusedCallback): Through => ({ ok: false, why })

const addressesOf = (name: string): readonly string[] =>
  name === "localhost" ? ["127.0.0.1", "::1"] : [name === "[::1]" ? "::1" : name]

/** On every address that the name means, so that nobody else of this machine gets what is meant for it. */
const listen = async (servers: readonly Server[], named: Named): Promise<boolean> => {
  const addresses = addressesOf(named.name)
  for (const [at, server] of servers.entries()) {
    const address = addresses[at]
    if (address === undefined) break
    try {
      server.listen(named.port, address)
      await once(server, "listening")
    } catch (error) {
      const absent = (error as NodeJS.ErrnoException).code === "EADDRNOTAVAIL" && addresses.length > 1
      if (!absent) return false
    }
  }
  return servers.some(({ listening }) => listening)
}

export const openProgramCallback = ({ key, forMs, reach, refused }: ProgramCallbackOptions): ProgramCallback => {
  const tokens = new CallbackTokens()
  const cookie = { name: `caisson_${randomBytes(6).toString("hex")}`, value: randomBytes(32).toString("base64url") }
  const entries = new Map<string, string>()
  const takes = new Set<Take>()
  const used = new Set<Take>()
  const over = new AbortController()
  const answered = new AbortController()
  const servers = [callbackServer(refused), callbackServer(refused)]
  let opened: { readonly named: Named; readonly listens: Promise<boolean> } | undefined

  const admit = (take: Take): void => {
    if (takes.size < loginLimits.callbackSteps.value) takes.add(take)
  }
  const belongs = ({ name, port }: Named): boolean => opened?.named.name === name && opened.named.port === port

  /** The program may name its page a moment before it listens. */
  const connection = async (port: number): Promise<Duplex | undefined> => {
    const until = performance.now() + loginLimits.callbackReachMs.value
    for (;;) {
      const found = await reach(port)
      if (found !== undefined || over.signal.aborted || performance.now() > until) return found
      await pause(loginLimits.callbackReachMs.value / 50)
    }
  }

  const pass = async (came: URL): Promise<Through> => {
    const matching = (all: ReadonlySet<Take>): Take | undefined =>
      [...all].find((take) => faultOf(take, came) === undefined)
    const take = matching(takes)
    if (take === undefined) {
      if (matching(used) !== undefined) return no("used")
      return no([...takes].some((other) => faultOf(other, came) === "forged") ? "forged" : "wrong-path")
    }
    takes.delete(take)
    used.add(take)
    const inside = await connection(Number(came.port))
    const answer = inside === undefined ? undefined : await askProgram(inside, came, over.signal)
    if (answer === undefined) {
      // Nobody heard of it: it may come again.
      if (inside === undefined) {
        used.delete(take)
        takes.add(take)
      }
      return no("unanswered")
    }
    const next = answer.location === undefined ? undefined : namedIn(answer.location.href)
    if (next !== undefined && belongs(next)) admit(next.take)
    if (take.kind === "answer") answered.abort()
    return { ok: true, answer }
  }

  const answerWith = (response: ServerResponse, { status, location, text }: ProgramAnswer): void => {
    if (location !== undefined) {
      response.writeHead(303, { ...pageHeaders, location: location.href }).end()
      return
    }
    if (text === undefined) {
      response.writeHead(200, pageHeaders).end(page("This login went back to its program. You can close this page."))
      return
    }
    const headers = { ...pageHeaders, "content-type": text.type, "content-security-policy": strangersPage }
    response.writeHead(status >= 200 && status < 600 && status !== 204 ? status : 200, headers).end(text.body)
  }

  const enter = (token: string, response: ServerResponse): RefusedCallback | undefined => {
    const fault = tokens.redeem(token, key)
    const leads = entries.get(token)
    if (fault !== undefined || leads === undefined) return fault ?? "forged"
    entries.delete(token)
    const set = `${cookie.name}=${cookie.value}; Path=/; HttpOnly; SameSite=Lax; Max-Age=${Math.ceil(forMs / 1000)}`
    response.writeHead(303, { ...pageHeaders, location: leads, "set-cookie": set }).end()
    return undefined
  }

  const isOurs = ({ headers: { cookie: sent = "" } }: IncomingMessage): boolean =>
    sent.split(/;\s*/).some((pair) => sameText(pair, `${cookie.name}=${cookie.value}`))

  const take = async (request: IncomingMessage, response: ServerResponse): Promise<RefusedCallback | undefined> => {
    const hostName = `${opened?.named.name}:${opened?.named.port}`
    if (request.headers.host !== hostName) return "wrong-host"
    const came = URL.parse(request.url ?? "", `http://${hostName}`)
    if (came === null || came.host !== hostName || request.url?.startsWith("/") !== true) return "wrong-path"
    if (request.method !== "GET") return "wrong-method"
    if (!isNavigation(request)) return "wrong-origin"
    if (came.pathname.startsWith(ENTRY)) return enter(came.pathname.slice(ENTRY.length), response)
    if (!isOurs(request)) return "other-browser"
    const through = await pass(came)
    if (!through.ok) return through.why
    answerWith(response, through.answer)
    return undefined
  }

  for (const server of servers)
    server.on("request", (request: IncomingMessage, response: ServerResponse) => {
      request.resume()
      void take(request, response).then((why) => {
        if (why === undefined) return
        refused(why)
        const text =
          why === "other-browser"
            ? "Open this login by the address that Caisson gave, in this browser."
            : why === "unanswered"
              ? "The program of this login did not answer."
              : "This is no answer that a login waits for."
        response.writeHead(why === "wrong-path" ? 404 : why === "unanswered" ? 502 : 400, pageHeaders).end(page(text))
      })
    })

  return {
    answered: answered.signal,
    bring: async (address) => {
      const named = namedIn(address)
      if (named === undefined) return { way: "none" }
      opened ??= { named, listens: listen(servers, named) }
      // One port for a login: a program does not open this machine's at its will.
      if (!belongs(named)) return { way: "none" }
      admit(named.take)
      const { port } = named
      if (!(await opened.listens)) {
        await Promise.all(servers.map(closeServer))
        return { way: "taken", port }
      }
      const token = tokens.issue(key, forMs)
      entries.set(token, address)
      return { way: "open", port, through: `http://${named.name}:${port}${ENTRY}${token}` }
    },
    paste: async (address) => {
      const url = URL.parse(address.trim().slice(0, loginLimits.callbackChars.value))
      const fits =
        url !== null && url.protocol === "http:" && url.host === `${opened?.named.name}:${opened?.named.port}`
      const through = fits ? await pass(url) : no("wrong-host")
      if (!through.ok) {
        refused(through.why)
        return { took: false, why: through.why }
      }
      const { location } = through.answer
      return { took: true, ...(location === undefined ? {} : { location }) }
    },
    async [Symbol.asyncDispose]() {
      await opened?.listens
      // What the program answered last still goes out.
      await Promise.all(servers.map(closeServer))
      over.abort()
    },
  }
}
