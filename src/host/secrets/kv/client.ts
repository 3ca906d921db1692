/**
 * Requests to a HashiCorp-compatible server: one at a time in sight of its deadline, with this host's own token.
 *
 * Guarantees: TLS is verified, by the operator's authority where one is named; nothing but a loopback address is spoken to
 * in the clear. A redirect is not followed: the token is for the address that the operator wrote. An answer is bounded in
 * bytes and time. A token that is refused is fetched anew once, since files are replaced and leases end. No failure holds a
 * token or anything that was answered.
 * Assumes: the token's file, or those of the role, are readable by this user alone.
 */
import { closeSync, fstatSync, openSync, readFileSync, readSync } from "node:fs"
import { Agent, request } from "undici"
import type { Failure } from "../../failure.ts"
import { kvLimits } from "../../limits.ts"
import type { KvSettings } from "../../config/types.ts"
import { Secret } from "../secret.ts"

export interface KvRequest {
  readonly method: "GET" | "LIST" | "POST" | "DELETE"
  /** segments below `/v1/` */
  readonly path: readonly string[]
  readonly body?: object
}
export type KvAnswer =
  | { readonly ok: true; readonly status: number; readonly body: unknown }
  | { readonly ok: false; readonly failure: Failure }

interface KvClient extends AsyncDisposable {
  ask(request: KvRequest): Promise<KvAnswer>
}

const failed = (message: string, hint: string, retryable: boolean): KvAnswer => ({
  ok: false,
  failure: { ok: false, code: "internal", message, hint, retryable, details: {} },
})

/** A file with a secret of this host's: nobody else's, closed to others. */
const readSecretFile = (file: string): { readonly value: Secret } | { readonly why: string } => {
  let fd: number
  try {
    fd = openSync(file, "r")
  } catch (error) {
    return { why: `${file} cannot be read (${(error as NodeJS.ErrnoException).code ?? "error"})` }
  }
  try {
    const stat = fstatSync(fd)
    if (!stat.isFile()) return { why: `${file} is no plain file` }
    if (stat.uid !== process.getuid?.() && stat.uid !== 0) return { why: `${file} belongs to another user` }
    if ((stat.mode & 0o007) !== 0 || (stat.mode & 0o020) !== 0) return { why: `${file} is open to others` }
    const bytes = Buffer.alloc(kvLimits.tokenBytes.value + 1)
    const length = readSync(fd, bytes, 0, bytes.length, 0)
    const text = bytes.subarray(0, length).toString("utf8").trim()
    if (length > kvLimits.tokenBytes.value || !/^[\x21-\x7e]+$/.test(text))
      return { why: `${file} does not hold one word` }
    return { value: new Secret(text) }
  } finally {
    closeSync(fd)
  }
}

const unreachable = (address: string, error: unknown): KvAnswer => {
  const { code, name } = error as { code?: string; name?: string }
  return failed(
    `the vault at ${address} did not answer (${code ?? name ?? "error"})`,
    "see that it runs and that `vault.kv` in caisson.yaml names it and its authority rightly, then try again",
    true,
  )
}

const json = (text: string): unknown => {
  try {
    return JSON.parse(text) as unknown
  } catch {
    return undefined
  }
}

const tokenIn = (body: unknown): Secret | undefined => {
  const { auth } = (body ?? {}) as { auth?: { client_token?: unknown } }
  const token = auth?.client_token
  return typeof token === "string" && /^[\x21-\x7e]+$/.test(token) ? new Secret(token) : undefined
}

export const createKvClient = (settings: KvSettings): KvClient => {
  const { address, namespace, auth } = settings
  const agent = new Agent({
    connections: kvLimits.connections.value,
    maxResponseSize: kvLimits.answerBytes.value,
    ...(settings.caFile === undefined ? {} : { connect: { ca: readFileSync(settings.caFile) } }),
  })
  let token: Secret | undefined

  const send = async ({ method, path, body }: KvRequest, as: Secret | undefined): Promise<KvAnswer> => {
    const url = new URL(`v1/${path.map(encodeURIComponent).join("/")}`, address)
    // LIST is no method of every HTTP library; the server takes this for it.
    if (method === "LIST") url.searchParams.set("list", "true")
    try {
      const answer = await request(url, {
        method: method === "LIST" ? "GET" : method,
        dispatcher: agent,
        signal: AbortSignal.timeout(kvLimits.answerMs.value),
        headers: {
          "x-vault-request": "true",
          ...(as === undefined ? {} : { "x-vault-token": as.reveal() }),
          ...(namespace === undefined ? {} : { "x-vault-namespace": namespace }),
          ...(body === undefined ? {} : { "content-type": "application/json" }),
        },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      })
      return { ok: true, status: answer.statusCode, body: json(await answer.body.text()) }
    } catch (error) {
      return unreachable(address, error)
    }
  }

  const notSignedIn = (why: string): KvAnswer =>
    failed(`this host cannot sign in to the vault at ${address}: ${why}`, "mend what `vault.kv` names", false)

  /** A token of the operator's, or one that the server gives for the role. */
  const signIn = async (): Promise<KvAnswer & { readonly token?: Secret }> => {
    if (auth.by === "token") {
      const read = readSecretFile(auth.tokenFile)
      return "why" in read ? notSignedIn(read.why) : { ok: true, status: 200, body: undefined, token: read.value }
    }
    const [role, secret] = [readSecretFile(auth.roleIdFile), readSecretFile(auth.secretIdFile)]
    if ("why" in role) return notSignedIn(role.why)
    if ("why" in secret) return notSignedIn(secret.why)
    const body = { role_id: role.value.reveal(), secret_id: secret.value.reveal() }
    const answer = await send({ method: "POST", path: ["auth", ...auth.mount.split("/"), "login"], body }, undefined)
    if (!answer.ok) return answer
    const given = answer.status === 200 ? tokenIn(answer.body) : undefined
    return given === undefined ? notSignedIn(`the role was refused (${answer.status})`) : { ...answer, token: given }
  }

  const ask = async (asked: KvRequest): Promise<KvAnswer> => {
    let isFresh = token === undefined
    for (;;) {
      if (token === undefined) {
        const signedIn = await signIn()
        if (!signedIn.ok) return signedIn
        token = signedIn.token
      }
      const used = token
      const answer = await send(asked, used)
      if (!answer.ok) return answer
      const { status } = answer
      if (status === 403 && !isFresh) {
        isFresh = true
        if (token === used) token = undefined
        continue
      }
      if (status === 403)
        return failed(
          `the vault at ${address} does not let this host ${asked.method === "POST" ? "write" : "read"} there`,
          `give its token a policy over \`${settings.mount}/data/${settings.prefix}/*\` and \`${settings.mount}/metadata/${settings.prefix}/*\``,
          false,
        )
      if (status >= 300 && status < 400)
        return failed(
          `the vault at ${address} sends this host elsewhere, and its token is not taken along`,
          "write the address of the active server in `vault.kv.address`",
          false,
        )
      if (status >= 500 || status === 429)
        return failed(
          `the vault at ${address} is not ready (${status}${status === 503 ? ": perhaps sealed" : ""})`,
          "unseal or mend it, then try again",
          true,
        )
      return answer
    }
  }
  return { ask, [Symbol.asyncDispose]: () => agent.destroy() }
}
