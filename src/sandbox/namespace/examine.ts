/** What `doctor` says of this backend: the facts of the machine, then the canaries. */
import type { ControlReport, SandboxBackend } from "../backend.ts"
import { examine } from "../examine.ts"
import { placeReport } from "../layers/prove-place.ts"
import type { Launched } from "./launch.ts"
import type { Refusal } from "./protocol.ts"

export const examineControls = async (
  backend: SandboxBackend,
  launched: Launched | Refusal,
): Promise<ControlReport[]> => {
  if ("ok" in launched)
    return [{ control: launched.control, state: "absent", evidence: launched.message, fix: launched.fix }]
  const { facts } = launched
  const groups: ControlReport =
    facts.groups === "none"
      ? {
          control: "cgroups",
          state: "absent",
          evidence: facts.groupsReason,
          fix: "run as root, or give this user a delegated cgroup (`systemd-run --user --scope -p Delegate=yes caisson doctor`); memory is limited per process only",
        }
      : {
          control: "cgroups",
          state: "enforced",
          evidence: `cgroup ${facts.groups}: ${Object.entries(facts.controllers)
            .filter(([, there]) => there)
            .map(([name]) => name)
            .join(", ")}`,
        }
  const mode: ControlReport = {
    control: "namespaces",
    state: "enforced",
    evidence: facts.privileged
      ? "as root: sandboxes run as a user that owns nothing here"
      : "as an ordinary user, in a user namespace",
  }
  const apart: ControlReport = facts.ownUsers
    ? { control: "users-apart", state: "enforced", evidence: "each sandbox has a user of its own" }
    : {
        control: "users-apart",
        state: "degraded",
        evidence: facts.privileged
          ? "sandboxes share one user, because /run/caisson-users cannot be used: calls can use up each other's inotify instances, pipe memory and keys"
          : "sandboxes are this user's: calls can use up each other's inotify instances (half of the user's), pipe memory and keys",
        fix: facts.privileged ? "make /run/caisson-users a folder that only root can write" : "run as root",
      }
  return [mode, apart, groups, placeReport(facts.layers), ...(await examine(backend))]
}
