/** The folder that a job is about, looked at once: from then on it is that folder and no other. */
import type { Job, Unavailable } from "./backend.ts"
import { type FolderIdentity, lookAt } from "./folder.ts"

export const workspaceOf = ({ workspace }: Pick<Job, "workspace">): FolderIdentity | Unavailable => {
  if (typeof workspace !== "string") return workspace
  try {
    return lookAt(workspace)
  } catch (error) {
    return {
      ok: false,
      control: "workspace",
      message: `the workspace ${workspace} cannot be used: ${(error as Error).message}`,
      fix: "name an existing folder",
    }
  }
}
