/**
 * One file from the web, to the last byte, however often the way there breaks.
 *
 * Guarantees: what came is kept when it breaks off, and only what is missing is asked for again (Range with If-Range), in
 * this process or the next; the digest is taken over the whole file as it lies on the disk at the end. Redirects lead to
 * https and to hosts that may be reached, a few times. Size, silence, time, redirects and attempts without progress are
 * bounded, so that a server which sends a byte now and then holds nobody up. A file whose digest is not the wanted one is
 * removed, and ends the installation.
 * Assumes: the caller holds the lock for this folder; the folder is this user's alone.
 */
import { createHash } from "node:crypto"
import { constants, mkdirSync, readFileSync, rmSync, statSync } from "node:fs"
import { type FileHandle, open } from "node:fs/promises"
import { join } from "node:path"
import { setTimeout as pause } from "node:timers/promises"
import { shown } from "../../manifest/values/diagnostics.ts"
import type { EgressEntry } from "../../manifest/values/egress-entry.ts"
import { writeWhole } from "../data/write-whole.ts"
import { installLimits } from "../limits.ts"
import { cancelled, failed, mismatched } from "./failures.ts"
import type { Ask, FillOptions, InstallAnswer, InstallFailure, WebAnswer } from "./types.ts"

interface Transfer {
  readonly url: string
  readonly sha256?: string
  readonly egress: readonly EgressEntry[]
  /** where it is kept meanwhile */
  readonly folder: string
  readonly most: number
  readonly stallMs: number
  /** for all attempts together */
  readonly wholeMs: number
  /** for people */
  readonly what: string
}

export interface Transferred {
  readonly file: string
  readonly sha256: string
  readonly bytes: number
}

const FLAGS = constants.O_RDWR | constants.O_CREAT | constants.O_NOFOLLOW
const RETRY_MS = 200
const CHUNK = 1024 * 1024
const hint = "try again later: what came is kept, and the rest is asked for; or see whether the address is right"

/** What broke off on the way and may be asked for again. */
type Broken = InstallFailure & { readonly again?: true }
const broken = (message: string, details: InstallFailure["details"] = {}): Broken => ({
  ...failed(message, hint, details),
  again: true,
})

/** What the server called the file when its first part came; nothing is added to a file of another name. */
const validatorIn = (folder: string): string | undefined => {
  try {
    const { url, validator } = JSON.parse(readFileSync(join(folder, "part.json"), "utf8")) as Record<string, unknown>
    return typeof url === "string" && typeof validator === "string" ? validator : undefined
  } catch {
    return undefined
  }
}

/** A strong tag, or the time that it was changed: a weak tag says nothing about bytes. */
const validatorOf = ({ headers }: WebAnswer): string | undefined => {
  const { etag } = headers
  return etag?.startsWith('"') === true ? etag : headers["last-modified"]
}

const nextHop = (from: URL, { status, headers }: WebAnswer): URL | Broken | undefined => {
  if (![301, 302, 303, 307, 308].includes(status)) return undefined
  const to = URL.parse(headers["location"] ?? "", from.href)
  if (to === null) return failed("it is redirected, and not said to where", hint)
  if (to.protocol !== "https:" || to.username !== "" || to.password !== "")
    return failed(`it is redirected to ${shown(to.protocol)}//${shown(to.host, 80)}, which is no https address`, hint)
  return to
}

/** The answer that has the file, redirects followed. */
const answerFor = async (
  { url, egress }: Transfer,
  headers: Readonly<Record<string, string>>,
  ask: Ask,
  signal: AbortSignal,
): Promise<{ readonly ok: true; readonly value: WebAnswer } | Broken> => {
  let at = new URL(url)
  for (let hops = 0; hops <= installLimits.redirects.value; hops += 1) {
    const answer = await ask({ url: at, headers, egress }, signal)
    if (!answer.ok) return answer.retryable === true ? { ...answer, again: true } : answer
    const next = nextHop(at, answer.value)
    if (next === undefined) return answer
    await answer.value[Symbol.asyncDispose]()
    if (!(next instanceof URL)) return next
    at = next
  }
  return failed(`it is redirected more than ${installLimits.redirects.value} times`, hint)
}

/** Where the answer's bytes belong in the file; undefined where they belong nowhere. */
const placeOf = ({ status, headers }: WebAnswer, have: number): { at: number; total?: number } | undefined => {
  if (status === 200) {
    const length = Number(headers["content-length"])
    return {
      at: 0,
      ...(headers["content-length"] !== undefined && Number.isSafeInteger(length) ? { total: length } : {}),
    }
  }
  const [, first, size] = /^bytes (\d+)-\d+\/(\d+|\*)$/.exec(headers["content-range"] ?? "") ?? []
  if (status !== 206 || Number(first) !== have) return undefined
  return { at: have, ...(size === "*" ? {} : { total: Number(size) }) }
}

/** One attempt; answers undefined where the file is complete. */
const attempt = async (
  transfer: Transfer,
  file: FileHandle,
  ask: Ask,
  { tell, signal }: FillOptions,
): Promise<Broken | undefined> => {
  const { folder, most, stallMs, what, url } = transfer
  const validator = validatorIn(folder)
  const have = validator === undefined ? 0 : (await file.stat()).size
  const silence = new AbortController()
  const stall = (): NodeJS.Timeout => setTimeout(() => silence.abort(), stallMs)
  let timer = stall()
  const silent = (): Broken => broken(`the server was silent for ${stallMs} ms`, { reason: "stalled" })
  try {
    const resume = have > 0 && validator !== undefined ? { range: `bytes=${have}-`, "if-range": validator } : {}
    const headers = { accept: "*/*", "accept-encoding": "identity", "user-agent": "caisson", ...resume }
    const asked = await answerFor(transfer, headers, ask, AbortSignal.any([signal, silence.signal]))
    if (!asked.ok) return silence.signal.aborted && !signal.aborted ? silent() : asked
    await using answer = asked.value
    const { status } = answer
    if (status === 429 || status >= 500) return broken(`the server answered ${status}`, { status })
    // All of it came before, and nobody was left to use it.
    if (status === 416 && have > 0 && answer.headers["content-range"] === `bytes */${have}`) return undefined
    const place = placeOf(answer, have)
    if (place === undefined) {
      rmSync(join(folder, "part.json"), { force: true })
      // A part that the server does not go on with: from the beginning, then.
      if (status === 206 || status === 416) return broken(`the server did not go on from byte ${have}`, { status })
      return failed(`the server answered ${status}`, "see whether the address is right", { status })
    }
    const tooMuch = failed(`it is larger than ${Math.floor(most / 2 ** 20)} MiB`, "use a smaller file")
    if ((place.total ?? 0) > most) return tooMuch
    let at = place.at
    await file.truncate(at)
    const name = validatorOf(answer)
    if (name === undefined) rmSync(join(folder, "part.json"), { force: true })
    else writeWhole(join(folder, "part.json"), JSON.stringify({ url, validator: name }), 0o600)
    for await (const chunk of answer.body) {
      clearTimeout(timer)
      if (at + chunk.length > most) return tooMuch
      await file.write(chunk, 0, chunk.length, at)
      at += chunk.length
      tell({ phase: "downloading", what, bytes: at, ...(place.total === undefined ? {} : { total: place.total }) })
      timer = stall()
    }
    return place.total !== undefined && at !== place.total
      ? broken(`it ended after ${at} of ${place.total} bytes`, { reason: "truncated" })
      : undefined
  } catch (error) {
    if (signal.aborted) return cancelled
    if (silence.signal.aborted) return silent()
    if ((error as NodeJS.ErrnoException).code === "ENOSPC") throw error
    return broken(`it broke off after ${(await file.stat()).size} bytes`, { reason: "truncated" })
  } finally {
    clearTimeout(timer)
  }
}

const digestOf = async (file: FileHandle, bytes: number, signal: AbortSignal): Promise<string> => {
  const hash = createHash("sha256")
  const buffer = Buffer.allocUnsafe(CHUNK)
  for (let at = 0; at < bytes; ) {
    signal.throwIfAborted()
    const { bytesRead } = await file.read(buffer, 0, Math.min(CHUNK, bytes - at), at)
    if (bytesRead === 0) break
    hash.update(buffer.subarray(0, bytesRead))
    at += bytesRead
  }
  return hash.digest("hex")
}

/** `transfer.folder` holds the file when it is done, and what came of it when it is not. */
export const fetchWhole = async (
  transfer: Transfer,
  ask: Ask,
  options: FillOptions,
): Promise<InstallAnswer<Transferred>> => {
  const { folder, sha256: wanted, what } = transfer
  const { signal } = options
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  const path = join(folder, "part")
  await using file = await open(path, FLAGS, 0o600)
  const late = AbortSignal.timeout(transfer.wholeMs)
  const either = { ...options, signal: AbortSignal.any([signal, late]) }
  let idle = 0
  for (;;) {
    const before = statSync(path).size
    const ended = await attempt(transfer, file, ask, either)
    if (ended === undefined) break
    if (signal.aborted) return cancelled
    if (late.aborted)
      return failed(`${what} could not be fetched: it took longer than ${transfer.wholeMs} ms`, hint, {
        reason: "too-slow",
      })
    const { again, ...failure } = ended
    idle = statSync(path).size > before ? 0 : idle + 1
    if (again !== true || idle >= installLimits.downloadAttempts.value)
      return { ...failure, code: "install_failed", message: `${what} could not be fetched: ${failure.message}` }
    await pause(RETRY_MS * 2 ** idle, undefined, { signal: either.signal }).catch(() => undefined)
  }
  const { size } = await file.stat()
  const sha256 = await digestOf(file, size, signal)
  if (wanted === undefined || sha256 === wanted) return { ok: true, value: { file: path, sha256, bytes: size } }
  rmSync(folder, { recursive: true, force: true })
  return mismatched(`what ${shown(transfer.url, 200)} serves is not what the driver's author vouches for`, {
    expected: wanted,
    found: sha256,
  })
}
