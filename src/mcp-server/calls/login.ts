/**
 * A login that a call needs, by way of the client: the person opens a page, and the call is made again once they are back.
 *
 * Guarantees: the same login as everywhere, for the caller's own user and workspace, and for this host's own tenant alone; one
 * is its caller's, by its id, and ends when nobody comes back for it. Only a page of the web is told, by whom it was named is
 * told with it, and no secret is ever asked for by a form. What cannot be done by opening a page is left to `caisson login`.
 */
import { randomBytes } from "node:crypto"
import { type InputRequest, inputRequired } from "@modelcontextprotocol/server"
import { type Caller, OWN_TENANT, tenantOf } from "../../host/access/caller.ts"
import type { PageToOpen } from "../../host/person.ts"
import type { Envelope, Host, LoginReport } from "../../host/types.ts"
import type { JsonObject } from "../../manifest/types.ts"
import { mcpLimits } from "../limits.ts"

export const LOGIN = "login"

export interface Login {
  readonly id: string
  readonly whose: string
  /** of the call that it is for */
  readonly input: JsonObject
  readonly question: InputRequest
  readonly done: Promise<boolean>
  cancel(): void
}

/** The driver that wants it, where a call ended for want of one. */
export const driverIn = (envelope: Envelope): string | undefined => {
  if (envelope.ok || envelope.error.code !== "auth_required") return undefined
  const { driver, login } = envelope.error.details as { readonly driver?: unknown; readonly login?: unknown }
  return typeof driver === "string" && login !== undefined ? driver : undefined
}

const LOOPBACK = new Set(["localhost", "127.0.0.1", "[::1]"])
const isPage = (written: string, from: PageToOpen["from"]): boolean => {
  if (!URL.canParse(written) || written.length > mcpLimits.questionChars.value) return false
  const { protocol, hostname, username, password } = new URL(written)
  if (username !== "" || password !== "") return false
  // What the host names is the operator's own provider, whatever it is reached by.
  return protocol === "https:" || (protocol === "http:" && (from === "host" || LOOPBACK.has(hostname)))
}

const questionOf = (driver: string, { url, code, direct, through, from }: PageToOpen): InputRequest | undefined => {
  const page = through ?? direct ?? url
  if (!isPage(page, from)) return undefined
  const typed = code === undefined ? "" : ` The code to type there: ${code.slice(0, 64)}.`
  const stranger = from === "program" ? " The address is the program's own word." : ""
  return inputRequired.elicitUrl({
    message: `\`${driver}\` needs a login: open the page.${typed}${stranger}`,
    url: page,
  })
}

export class Logins implements Disposable {
  readonly #open = new Map<string, Login>()
  /** under way, from before there is a page: what comes meanwhile counts it */
  readonly #begun = new Set<{ readonly whose: string }>()
  /** that went well; whoever was asked may come back only then */
  readonly #done = new Map<string, Login>()

  /** Undefined: there is no page to open for it. */
  async begin(
    host: Pick<Host, "login">,
    caller: Caller,
    driver: string,
    workspace: string | undefined,
    whose: string,
    input: JsonObject,
  ): Promise<Login | undefined> {
    const own = [...this.#begun].filter((place) => place.whose === whose).length
    if (tenantOf(caller) !== OWN_TENANT || workspace === undefined) return undefined
    if (own >= mcpLimits.loginsOfOne.value || this.#begun.size >= mcpLimits.logins.value) return undefined
    const place = { whose }
    this.#begun.add(place)
    const cancel = new AbortController()
    const shown = Promise.withResolvers<PageToOpen | undefined>()
    const late = setTimeout(() => shown.resolve(undefined), mcpLimits.loginPageMs.value)
    const report: Promise<LoginReport | undefined> = host
      .login(driver, {
        caller,
        workspace,
        signal: cancel.signal,
        timeoutMs: mcpLimits.stateSeconds.value * 1_000,
        person: { open: (page) => shown.resolve(page) },
      })
      .catch(() => undefined)
    const id = randomBytes(24).toString("base64url")
    const done = report.then((told) => {
      shown.resolve(undefined)
      this.#begun.delete(place)
      const login = this.#open.get(id)
      this.#open.delete(id)
      if (told?.ok === true && login !== undefined) this.#keep(login)
      return told?.ok === true
    })
    const page = await shown.promise
    clearTimeout(late)
    const question = page === undefined ? undefined : questionOf(driver, page)
    if (question === undefined) {
      cancel.abort()
      return undefined
    }
    const login: Login = { id, whose, input, question, done, cancel: () => cancel.abort() }
    this.#open.set(id, login)
    return login
  }
  #keep(login: Login): void {
    this.#done.set(login.id, login)
    setTimeout(() => this.#done.delete(login.id), mcpLimits.stateSeconds.value * 1_000).unref()
    const [oldest] = this.#done.keys()
    if (oldest !== undefined && this.#done.size > mcpLimits.logins.value) this.#done.delete(oldest)
  }
  find(id: string, whose: string): Login | undefined {
    const found = this.#open.get(id) ?? this.#done.get(id)
    return found?.whose === whose ? found : undefined
  }
  [Symbol.dispose](): void {
    for (const login of this.#open.values()) login.cancel()
    this.#open.clear()
    this.#done.clear()
  }
}
