/** The exit codes of the interface, and how an envelope maps to one. Those of reasons come from the host's table. */
import { reasons } from "../host/reasons.ts"
import type { CallError, Envelope } from "../host/types.ts"

export const exit = { ok: 0, toolFailed: 1, usage: 2, refused: 3, personNeeded: 4, hostBroken: 5 } as const

export const exitOfError = (error: CallError): number => {
  const known = Object.entries(reasons).find(([code]) => code === error.code)
  return known === undefined ? exit.toolFailed : known[1].exit
}

export const exitOf = (envelope: Envelope): number => (envelope.ok ? exit.ok : exitOfError(envelope.error))
