/**
 * `caisson approvals [show|approve|deny ID]`: held calls, and a person's answer to one.
 *
 * Guarantees: `show` lists every effect, what is deleted first; `approve` commits exactly what is shown, and answers with
 * the call's envelope and its exit code, as `call` would have. JSON alone on stdout where stdout is no terminal.
 */
import type { HeldApproval, HeldApprovalDetail, Host } from "../../host/types.ts"
import { exit, exitOf } from "../exit.ts"
import type { HostFlags } from "../host.ts"
import { onInterrupt } from "../interrupt.ts"
import { withCaisson } from "../reach/with-caisson.ts"
import { heldLines } from "../render/envelope.ts"
import { table } from "../render/table.ts"
import { resultJson, type Terminal } from "../terminal.ts"
import { completed } from "../typed-again.ts"
import { inline } from "../visible.ts"
import { says } from "../texts.ts"
import { showEnvelope } from "./call.ts"

export interface ApprovalFlags extends HostFlags {
  readonly json?: boolean
  readonly reason?: string
}

const asJson = (flags: ApprovalFlags, terminal: Terminal): boolean => flags.json === true || !terminal.isInteractive

const rowOf = ({ id, about, tool, user, workspace, changes, expires }: HeldApproval): string[] => [
  id,
  inline(tool),
  inline(user),
  about === "call" ? says.notRun : String(changes),
  expires,
  inline(workspace),
]

const tellDamaged = (held: readonly HeldApproval[], { manifests }: ApprovalFlags, terminal: Terminal): void => {
  for (const { id, expires } of held.filter(({ damaged }) => damaged === true))
    terminal.say(completed(says.damaged(id, expires), manifests))
}

const showAll = (held: readonly HeldApproval[], terminal: Terminal): void => {
  if (held.length === 0) return terminal.say(says.noneHeld)
  terminal.result(table(["CALL", "TOOL", "USER", "CHANGES", "UNTIL", "WORKSPACE"], held.map(rowOf), terminal.width))
}

const showOne = (held: HeldApprovalDetail, { manifests }: ApprovalFlags, terminal: Terminal): void => {
  for (const line of heldLines(held, manifests, terminal.paintResult)) terminal.result(line)
}

export const list = (flags: ApprovalFlags, terminal: Terminal): Promise<number> =>
  withCaisson(flags, terminal, async (caisson) => {
    const held = await terminal.during(caisson.approvals())
    tellDamaged(held, flags, terminal)
    if (asJson(flags, terminal)) resultJson(terminal, held)
    else showAll(held, terminal)
    return exit.ok
  })

export const show = (id: string, flags: ApprovalFlags, terminal: Terminal): Promise<number> =>
  withCaisson(flags, terminal, async (caisson) => {
    const held = await terminal.during(caisson.approval(id))
    if (held === undefined) {
      terminal.say(
        `caisson: there is no held call ${inline(id)} (${completed("`caisson approvals`", flags.manifests)} lists them)`,
      )
      return exit.usage
    }
    tellDamaged([held], flags, terminal)
    if (asJson(flags, terminal)) resultJson(terminal, held)
    else showOne(held, flags, terminal)
    return exit.ok
  })

export const decide = async (
  id: string,
  answer: Parameters<Host["decide"]>[1],
  flags: ApprovalFlags,
  terminal: Terminal,
): Promise<number> => {
  using interrupt = onInterrupt(() => terminal.say(`caisson: ${says.cancelling}`))
  return await withCaisson(
    { ...flags, warm: answer === "approve" },
    terminal,
    async (caisson) => {
      const { reason } = flags
      const told = { signal: interrupt.signal, ...(reason === undefined ? {} : { reason }) }
      const envelope = await terminal.during(caisson.decide(id, answer, told), id)
      showEnvelope(envelope, flags, terminal)
      // What was asked for came about.
      return !envelope.ok && answer === "deny" && envelope.error.code === "approval_denied" ? exit.ok : exitOf(envelope)
    },
    (error) => {
      if (asJson(flags, terminal))
        resultJson(terminal, { ok: false, error, call: "none", effects: [], denied: [], receipt: "none" })
    },
  )
}
