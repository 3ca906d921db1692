/** The host in this process, as commands ask it. Its caller is who owns the data folder, and is told everything. */
import { toldDriver, toldTool, toldUnloaded, toldWhy } from "../../host/questions/told.ts"
import type { Host } from "../../host/types.ts"
import type { Caisson } from "./caisson.ts"

export const ofOwnHost = (host: Host): Caisson => ({
  call: (request, options) => host.call(request, options),
  why: async (request, options) => toldWhy(await host.why(request, options)),
  tools: async () => ({
    listed: (await host.tools()).map((listing) => toldTool(listing, true)),
    unloaded: toldUnloaded(host.unloaded(), "tool"),
    diagnostics: host.diagnostics(),
  }),
  drivers: async () => ({
    listed: (await host.drivers()).map((listing) => toldDriver(listing, true)),
    unloaded: toldUnloaded(host.unloaded(), "driver"),
    diagnostics: host.diagnostics(),
  }),
  approvals: () => host.approvals(),
  approval: (id) => host.approval(id),
  decide: (id, answer, options) => host.decide(id, answer, options),
  tokens: host.tokens,
  grants: host.grants,
  secrets: host.secrets,
})
