/** The kernel's limits that a sandbox's program is started with. Pure. */
import { RLIMIT } from "../../../linux/processes.ts"
import type { Job, SandboxShape } from "../../backend.ts"
import { cpuBackstop } from "../../endings.ts"
import type { WireLimit } from "../../process/job-wire.ts"

const limit = (resource: number, soft: number, hard = soft): WireLimit => ({
  resource,
  soft: BigInt(soft),
  hard: BigInt(hard),
})

export const limitsOf = (
  { limits }: SandboxShape,
  { diskBytes, cpuMs }: Pick<Job["limits"], "diskBytes" | "cpuMs">,
  grouped: boolean,
): WireLimit[] => [
  limit(RLIMIT.NOFILE, limits.openFiles),
  limit(RLIMIT.FSIZE, diskBytes),
  ...cpuBackstop(cpuMs, grouped).map(({ soft, hard }) => limit(RLIMIT.CPU, soft, hard)),
  ...(grouped ? [] : [limit(RLIMIT.DATA, limits.memoryBytes)]),
]
