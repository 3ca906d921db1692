/** What a driver needs that runs no program and talks to its service alone: the hosts that it declares. */
import type { DriverContract } from "../../manifest/types.ts"
import type { Needs } from "./kind.ts"

export const serviceNeeds = ({ egress }: Pick<DriverContract, "egress">): Needs => ({
  fs: { read: [], write: [], deny: [] },
  env: { pass: [], set: {} },
  egress,
  tty: false,
  notes: [],
})
