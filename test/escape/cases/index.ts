/** Every hostile program of the suite, in one list, for any backend. */
import { readFileSync } from "node:fs"
import { canMakeGroups } from "../../support/groups.ts"
import type { EscapeCase, MachineFacts } from "../escape-case.ts"
import { deadline } from "./deadline.ts"
import { egress } from "./egress.ts"
import { execution } from "./execution.ts"
import { hostFiles } from "./host-files.ts"
import { kernel } from "./kernel.ts"
import { limits } from "./limits.ts"
import { planting } from "./planting.ts"
import { processes } from "./processes.ts"
import { races } from "./races.ts"
import { sockets } from "./sockets.ts"
import { terminal } from "./terminal.ts"

export const caseGroups: Readonly<Record<string, readonly EscapeCase[]>> = {
  sockets,
  egress,
  "files of the host": hostFiles,
  processes,
  kernel,
  execution,
  limits,
  deadline,
  planting,
  races,
  "terminal and descriptors": terminal,
}
const facts: MachineFacts = {
  arch: process.arch,
  groups: canMakeGroups(),
  userMode: readFileSync("/proc/cpuinfo", "utf8").includes("User Mode Linux"),
}
/** Does the attempt make sense on this machine, as this user? */
export const applies = (escape: EscapeCase): boolean => escape.only?.(facts) ?? true
export const escapeCases: readonly EscapeCase[] = Object.values(caseGroups).flat()
