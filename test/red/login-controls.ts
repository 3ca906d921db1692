/**
 * Each control of logins, their callbacks, tokens, locks and secrets, as an edit of the source that takes it out, and the
 * tests that must then turn red. Where several controls stand behind one another, they are taken out together.
 */
import type { Edit } from "../escape/controls.ts"

export interface LoginControl {
  readonly name: string
  readonly edits: readonly Edit[]
  /** below `test` */
  readonly file: string
  /** where its tests are written, where that is another one */
  readonly written?: string
  /** parts of the names of its tests */
  readonly reddens: readonly string[]
}

const edit = (file: string, find: string, replace: string): Edit => ({ file, find, replace })
const callback = (file: string, find: string, replace: string): Edit =>
  edit(`host/login/callback/${file}`, find, replace)
const tokens = (find: string, replace: string): Edit => edit("egress-proxy/tls/relay-tokens.ts", find, replace)

const words = "host/login/callback-tokens.test.ts"
const program = "host/login/program-callback.test.ts"
const pages = "host/login/oauth.test.ts"
const wire = "egress-proxy/tokens/capture-wire.test.ts"

export const loginControls: readonly LoginControl[] = [
  {
    name: "a callback's word: its signature",
    edits: [callback("tokens.ts", 'if (!timingSafeEqual(mac, this.#sign(head, key))) return "forged"', "")],
    file: words,
    reddens: ["any other nonce, time or signature", "of another process"],
  },
  {
    name: "a callback's word: whose it is",
    edits: [
      callback(
        "tokens.ts",
        'if (!timingSafeEqual(bytes.subarray(NONCE + TIME + MAC), tupleOf(key))) return "foreign"',
        "",
      ),
      callback("tokens.ts", ".update(head).update(tupleOf(key)).digest()", ".update(head).digest()"),
    ],
    file: words,
    reddens: ["nobody's but its own login's"],
  },
  {
    name: "a callback's word: its time",
    edits: [callback("tokens.ts", 'if (now > until) return "late"', "")],
    file: words,
    reddens: ["up to its time"],
  },
  {
    name: "a callback's word: once",
    edits: [callback("tokens.ts", 'if (this.#used.has(nonce)) return "used"', "")],
    file: words,
    reddens: ["is good once"],
  },
  {
    name: "a program's callback: the browser's cookie",
    edits: [callback("program.ts", 'if (!isOurs(request)) return "other-browser"', "")],
    file: program,
    reddens: ["lets nothing through"],
  },
  {
    name: "a program's callback: the flow's state",
    edits: [
      callback(
        "named.ts",
        'return state !== undefined && sameText(state, take.state) ? undefined : "forged"',
        "return undefined",
      ),
    ],
    file: program,
    reddens: ["lets nothing through", "a port that is taken"],
  },
  {
    name: "a program's callback: each answer once",
    edits: [callback("program.ts", "takes.delete(take)", "")],
    file: program,
    reddens: ["and its answer to the program, once"],
  },
  {
    name: "a program's callback: the name it was handed out under",
    edits: [callback("program.ts", 'if (request.headers.host !== hostName) return "wrong-host"', "")],
    file: program,
    reddens: ["lets nothing through"],
  },
  {
    name: "callbacks: no page's request",
    edits: [callback("page.ts", "if (origin !== undefined) return false", "")],
    file: program,
    reddens: ["lets nothing through"],
  },
  {
    name: "callbacks: a navigation",
    edits: [
      callback(
        "page.ts",
        'return (mode === undefined || mode === "navigate") && (dest === undefined || dest === "document")',
        "return mode === undefined || dest !== undefined",
      ),
    ],
    file: program,
    reddens: ["lets nothing through"],
  },
  {
    name: "a program's page: its scripts and cookies",
    edits: [callback("program.ts", '"content-security-policy": strangersPage', '"x-was": strangersPage')],
    file: program,
    reddens: ["and its answer to the program, once"],
  },
  {
    name: "the host's own callback: its state",
    edits: [
      callback(
        "loopback.ts",
        '(states.length === 1 ? tokens.redeem(states[0] ?? "", key) : "malformed") ?? url',
        "url",
      ),
    ],
    file: pages,
    reddens: ["takes no answer that another page sends"],
  },
  {
    name: "the host's own callback: its name",
    edits: [callback("loopback.ts", 'if (request.headers.host !== hostName) return "wrong-host"', "")],
    file: pages,
    reddens: ["takes no answer that another page sends"],
  },
  {
    name: "tokens: placeholders in their place",
    edits: [tokens("body: read.with(login)", "body: answer.body")],
    file: wire,
    reddens: ["none of them came in"],
  },
  {
    name: "tokens: kept before they are told",
    edits: [tokens("return isKept ?", "return isKept || true ?")],
    file: wire,
    reddens: ["what cannot be kept is not handed out"],
  },
  {
    name: "tokens: the newest are sent",
    edits: [
      tokens("if (held !== undefined) captured.set(held.logins)", ""),
      tokens("const back = held === undefined ? first : turnBack(body, type, held.logins)", "const back = first"),
    ],
    file: wire,
    reddens: ["that another process rotated meanwhile"],
  },
  {
    name: "tokens: a refresh token in no header",
    edits: [
      edit(
        "egress-proxy/tokens/held.ts",
        'headers: kind === "access" ? ["authorization"] : []',
        'headers: ["authorization"]',
      ),
    ],
    file: wire,
    reddens: ["a refresh token goes into no header"],
  },
  {
    name: "tokens: a placeholder elsewhere in a request is a misuse",
    edits: [
      edit("egress-proxy/tokens/request.ts", "if (left !== undefined) return { ok: false, placeholder: left }", ""),
    ],
    file: "egress-proxy/tokens/request.test.ts",
    reddens: ["a request to a token endpoint"],
  },
  {
    name: "tokens: an answer that leads elsewhere",
    edits: [edit("egress-proxy/tokens/answer.ts", "if (!isWell && status < 400)", "if (!isWell && status < 300)")],
    file: "egress-proxy/tokens/answer.test.ts",
    reddens: ["leads elsewhere"],
  },
  {
    name: "tokens: of one owner",
    edits: [
      edit(
        "host/secrets/captured-tokens.ts",
        "const owner = { driver, workspace, user }",
        'const owner = { driver, workspace, user: "all" }',
      ),
    ],
    file: "e2e/tokens.test.ts",
    written: "e2e/token-cases.ts",
    reddens: ["logs in, calls and refreshes with placeholders alone"],
  },
  {
    name: "refreshes: one at a time across processes",
    edits: [
      edit(
        "host/data/file-lock.ts",
        "flock(fd, (shared ? LOCK.SHARED : LOCK.EXCLUSIVE) | LOCK.NONBLOCK)",
        "flock(fd, LOCK.SHARED | LOCK.NONBLOCK)",
      ),
    ],
    file: "chaos/logins.test.ts",
    reddens: ["fifty calls of four processes at the moment of expiry make one refresh at the provider"],
  },
  {
    name: "refreshes: not what another one has refreshed",
    edits: [
      edit(
        "host/login/refresh.ts",
        'if (seen.facts.freshness !== freshness && !(await lacksInMemory(parts, owner))) return { end: "refreshed" }',
        "",
      ),
    ],
    file: "chaos/logins.test.ts",
    reddens: ["fifty calls of four processes at the moment of expiry make one refresh at the provider"],
  },
  {
    name: "a login: its proof",
    edits: [
      edit(
        "host/login/sign-in-now.ts",
        'if (proven.holds === "yes") return { proven, end, method: flow.method }',
        'return { proven: { holds: "yes" }, end, method: flow.method }',
      ),
    ],
    file: "e2e/logins.test.ts",
    reddens: ["whose command says yes and whose proof says no"],
  },
  {
    name: "a login: of one manifest",
    edits: [edit("host/login/logins.ts", "if (seen.foreign) {", "if (seen.foreign && owner.user === '') {")],
    file: "e2e/logins.test.ts",
    reddens: ["a manifest that was changed since"],
  },
  {
    name: "a secret that is a file: not kept",
    edits: [
      edit("host/call/running/keep-home.ts", ".filter(({ path }) => opened?.isGiven?.(path) !== true)", ""),
      edit("host/call/sealing/home.ts", "after.content.filter(({ path }) => !isGiven(path))", "after.content"),
    ],
    file: "e2e/secrets-as-files.test.ts",
    reddens: ["is not kept, whatever the program makes of it"],
  },
  {
    name: "a secret that is a file: no link in its way",
    edits: [
      edit(
        "host/call/sealing/home.ts",
        'folders.has(path) && kind !== "folder" ? [path] : []',
        'folders.has(path) && kind === "file" ? [path] : []',
      ),
    ],
    file: "e2e/secrets-as-files.test.ts",
    reddens: ["where a program left a link in the way"],
  },
  {
    name: "secrets: of drivers that somebody vouches for",
    edits: [
      edit(
        "host/secrets/bind.ts",
        "meant(vouched ? held : held.filter(({ scope }) => scope.driver !== undefined), slug, use)",
        "meant(held, slug, use)",
      ),
    ],
    file: "e2e/secrets.test.ts",
    reddens: ["a driver of a folder that nobody vouches for gets only"],
  },
  {
    name: "secrets: of those whom their rules name",
    edits: [edit("host/secrets/bind.ts", "if (refused !== undefined) return denied(refused.need, binding)", "")],
    file: "host/secrets/needs.test.ts",
    reddens: ["is decided before the vault is asked", "whose rules deny the call is never asked"],
  },
]
