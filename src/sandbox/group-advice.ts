/**
 * What is said where control groups are missing: by `doctor`, and to a call one of whose limits needs them. Pure.
 *
 * Guarantees: whoever lacks them is told of every way to get them, a system unit's too.
 */
import type { ControlReport, SandboxProfile } from "./backend.ts"

/** What a launcher found of control groups. */
interface GroupFacts {
  readonly version: "v1" | "v2" | "none"
  /** what is missing, when `none` */
  readonly reason: string
  readonly controllers: { readonly memory: boolean; readonly pids: boolean; readonly cpu: boolean }
}

export const delegate =
  "run as root, or give this user control groups of its own (`systemd-run --user --scope -p Delegate=yes caisson doctor`, or `Delegate=yes` in the `[Service]` of the system unit that runs it)"

export const groupsReport = ({ version, reason, controllers }: GroupFacts): ControlReport =>
  version === "none"
    ? {
        control: "cgroups",
        state: "absent",
        evidence: reason,
        fix: `${delegate}; memory is limited per process only`,
      }
    : {
        control: "cgroups",
        state: "enforced",
        evidence: `cgroup ${version}: ${Object.entries(controllers)
          .filter(([, there]) => there)
          .map(([name]) => name)
          .join(", ")}`,
      }

/** A limit that must hold, and does not on this machine. */
export const unmetLimit = (
  required: SandboxProfile["required"],
  { version, reason, controllers }: GroupFacts,
): { ok: false; control: string; message: string; fix: string } | undefined => {
  const why = version === "none" ? reason : "the controller is missing"
  const refusal = (control: string, what: string) =>
    ({ ok: false, control, message: `${what} cannot be enforced: ${why}`, fix: delegate }) as const
  if (required.includes("memoryBytes") && !controllers.memory)
    return refusal("memory-limit", "a memory limit for the whole process tree")
  if (required.includes("cpus") && !controllers.cpu) return refusal("cpu-share", "a CPU share")
  return undefined
}
