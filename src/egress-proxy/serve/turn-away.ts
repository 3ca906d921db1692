/**
 * What a connection beyond the cap hears: why, in the words of the protocol it speaks.
 *
 * Guarantees: at most a few are told at once and each is gone after the linger time, so that the cap holds; beyond
 * that they are reset. Nothing of what they ask for is looked at. `close` ends those that are still being told.
 */
import type { ByteSource } from "../connection/byte-source.ts"
import { denialResponse } from "../policy/denial.ts"
import { abort } from "../connection/endpoint.ts"
import { linger, type Lingering } from "./linger.ts"
import type { Verdict } from "../types.ts"

interface Door {
  turnAway(source: ByteSource, verdict: Verdict): void
  close(): void
}

/** "no acceptable method" and "rejected": all that SOCKS can say before a request */
const socks5Refusal = Buffer.from([5, 0xff])
const socks4Refusal = Buffer.from([0, 0x5b, 0, 0, 0, 0, 0, 0])

export function createDoor(gate: Lingering): Door {
  const { limits } = gate
  const told = new Set<ByteSource>()
  const tell = async (source: ByteSource, verdict: Verdict): Promise<void> => {
    const first = await source.read(limits.lingerMs)
    if (typeof first === "string") return abort(source)
    const http = () => denialResponse(verdict, { keepAlive: false, headOnly: false })
    await linger(source, first[0] === 5 ? socks5Refusal : first[0] === 4 ? socks4Refusal : http(), gate)
  }
  return {
    turnAway(source, verdict) {
      if (told.size >= limits.turnedAway) return abort(source)
      told.add(source)
      source.on("close", () => told.delete(source))
      tell(source, verdict).catch(() => abort(source))
    },
    close() {
      for (const source of told) source.destroy()
    },
  }
}
