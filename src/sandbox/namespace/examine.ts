/** What `doctor` says of this backend: the facts of the machine, then the canaries. */
import type { ControlReport, SandboxBackend } from "../backend.ts"
import { examine } from "../doctor/examine.ts"
import { groupsReport } from "../group-advice.ts"
import { placeReport } from "../layers/prove-place.ts"
import type { Launched } from "./launch.ts"
import type { Refusal } from "./launcher/protocol.ts"

export const examineControls = async (
  backend: SandboxBackend,
  launched: Launched | Refusal,
): Promise<ControlReport[]> => {
  if ("ok" in launched)
    return [{ control: launched.control, state: "absent", evidence: launched.message, fix: launched.fix }]
  const { facts } = launched
  const groups = { version: facts.groups, reason: facts.groupsReason, controllers: facts.controllers }
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
  return [mode, apart, groupsReport(groups), placeReport(facts.layers), ...(await examine(backend))]
}
