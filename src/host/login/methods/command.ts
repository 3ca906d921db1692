/**
 * The program's own login and refresh: `login.cmd`, `refresh.cmd`.
 *
 * Guarantees: runs in the driver's home, with a terminal where the manifest says that a person is asked; without one to
 * lend, nothing runs. How the command ended is its own word: it can say that it failed, and proves nothing when it says
 * that it did not. A host that could not be reached is told as that, so that nobody is signed out for it.
 */
import type { FlowFailed, LoginDesk, LoginFlow, LoginMethod, RefreshFlow } from "../flow.ts"
import type { RanInHome } from "../run-in-home.ts"
import { openProgramCallback, type Reach } from "../callback/program.ts"
import { offerPages, type RefusedBy } from "./offer-pages.ts"
import { watchPages } from "./printed-pages.ts"

const SAID = 400

/** The end of what it said, for a person. */
const lastWords = (ran: Extract<RanInHome, { ran: true }>): string => {
  const said = (ran.stderr.trim() === "" ? ran.stdout : ran.stderr).trim().slice(-SAID)
  return said === "" ? "" : `: ${said}`
}

const aborted = ({ signal, deadlineMs }: LoginDesk, what: string): FlowFailed | undefined => {
  if (!signal.aborted) return undefined
  return Date.now() >= deadlineMs
    ? { ok: false, why: "timed-out", message: `${what} was not done in time` }
    : { ok: false, why: "cancelled", message: `${what} was cancelled` }
}

/** Undefined: it ended well, by its own word. */
const failureOf = (desk: LoginDesk, ran: RanInHome, what: string): FlowFailed | undefined => {
  if (!ran.ran) {
    if (ran.why === "cancelled")
      return aborted(desk, what) ?? { ok: false, why: "cancelled", message: `${what} was cancelled` }
    return { ok: false, why: "broken", message: `${what} could not be run: ${ran.message}`, fix: ran.fix }
  }
  if (ran.timedOut) return { ok: false, why: "timed-out", message: `${what} was not done in time` }
  if (ran.exit === 0) return undefined
  const stopped = aborted(desk, what)
  if (stopped !== undefined) return stopped
  if (ran.unreachable.length > 0)
    return {
      ok: false,
      why: "unreachable",
      message: `${what} failed, and these hosts could not be reached: ${ran.unreachable.join(", ")}`,
      fix: "try again when the network is there",
    }
  const kept = ran.denied.length === 0 ? "" : `; its driver does not declare ${ran.denied.join(", ")}`
  const how = ran.exit === null ? "did not end by itself" : `exited with ${ran.exit}`
  return { ok: false, why: "refused", message: `${what} ${how}${kept}${lastWords(ran)}` }
}

const loginBy = (cmd: string, interactive: boolean, refused: RefusedBy): LoginFlow => ({
  method: "command",
  needs: interactive ? ["terminal"] : [],
  run: async (desk) => {
    const { person, signal, deadlineMs } = desk
    if (interactive && person.terminal === undefined)
      return {
        ok: false,
        why: "needs-person",
        message: "the program's own login asks a person at a terminal, and none is there",
      }
    let reach: Reach = async () => undefined
    const callback = openProgramCallback({
      key: desk.key,
      forMs: Math.max(1, deadlineMs - Date.now()),
      reach: (port) => reach(port),
      refused: (why) => refused(desk, why),
    })
    await using _callback = callback
    const over = new AbortController()
    const offer = offerPages(desk, callback, over.signal)
    const pages = person.open === undefined ? undefined : watchPages(offer)
    const ran = await desk.run(
      {
        cmd,
        timeoutMs: Math.max(1, deadlineMs - Date.now()),
        keepIfWell: true,
        ...(person.terminal === undefined ? {} : { terminal: person.terminal }),
        ...(pages === undefined ? {} : { heard: pages.hear, began: (found) => (reach = found) }),
      },
      signal,
    )
    pages?.end()
    over.abort()
    return failureOf(desk, ran, "the login command") ?? { ok: true }
  },
})

const refreshBy = (cmd: string): RefreshFlow => ({
  method: "command",
  run: async (desk) => {
    const ran = await desk.run({ cmd, timeoutMs: Math.max(1, desk.deadlineMs - Date.now()) }, desk.signal)
    return failureOf(desk, ran, "the refresh command") ?? { ok: true }
  },
})

interface CommandOptions {
  /** told of requests for a program's callback that were refused */
  readonly refused: RefusedBy
}

export const commandMethod = ({ refused }: CommandOptions): LoginMethod => ({
  loginOf: ({ contract: { auth } }) =>
    auth?.login?.cmd === undefined ? undefined : loginBy(auth.login.cmd, auth.login.interactive, refused),
  refreshOf: ({ contract: { auth } }) => (auth?.refresh?.via === "cmd" ? refreshBy(auth.refresh.cmd) : undefined),
})
