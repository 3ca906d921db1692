/**
 * One question of an installation to a web server, asked by the host itself.
 *
 * Guarantees: the connection goes the way of a sandbox's, to these hosts alone, and reads only. What was not let through
 * is named. The way is closed with the answer.
 */
import { askWeb } from "../../../drivers/ask-web.ts"
import type { Ask } from "../../../install/types.ts"
import type { HostCore } from "../../core.ts"
import { readingFrom } from "../../sealing/network.ts"

export const createFetcher =
  (core: Pick<HostCore, "config" | "egressProxy">): Ask =>
  async ({ egress, ...request }, signal) => {
    await using scope = new AsyncDisposableStack()
    const served = scope.use(await core.egressProxy(readingFrom(core, egress)))
    const asked = await askWeb({ connect: (to) => served.dial({ ...to, signal }) }, request, signal)
    if (!asked.ok) return asked
    scope.use(asked.value)
    const closing = scope.move()
    return { ok: true, value: { ...asked.value, [Symbol.asyncDispose]: () => closing.disposeAsync() } }
  }
