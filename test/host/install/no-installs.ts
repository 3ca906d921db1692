import type { Installs } from "../../../src/host/install/installs.ts"

const nothing = {
  ok: false,
  code: "tool_unavailable",
  message: "nothing is installed here",
  details: {},
} as const

export const noInstalls: Installs = {
  find: () => Promise.resolve(nothing),
  ensure: () => Promise.resolve(nothing),
  prune: () => Promise.resolve({ removed: [], bytes: 0 }),
}
