/**
 * A job → bubblewrap's arguments. Pure.
 *
 * Every namespace is named: `--unshare-all` would go on without one that the kernel refuses.
 */
import type { Job } from "../../backend.ts"
import type { LayerPaths } from "../../layers/call-mounts.ts"
import type { Masks } from "../../proc-masks.ts"

export interface SandboxPaths extends LayerPaths {
  readonly root: string
  readonly blank: Blank
}
/** What of /proc is covered, and an empty file and folder to cover it with. */
export interface Blank {
  readonly masks: Masks
  readonly file: string
  readonly folder: string
}

const insideUser = { uid: 1000, gid: 1000, home: "/home/tool" } as const

/**
 * A terminal obeys the session it controls, and only the session's leader can take it: so the program is made one, by a
 * step inside that becomes the program. Bubblewrap itself stays out of the session, and what is typed does not signal it.
 * The step can do nothing that the program could not do by itself.
 */
const sessionStep = "/dev/caisson-session"
export const ownSession = {
  program: "/usr/bin/setsid",
  command: [sessionStep, "--ctty", "--"],
} as const

export const bwrapArguments = (job: Pick<Job, "env" | "stdio">, slot: SandboxPaths): string[] => {
  const args = [
    "--unshare-user",
    "--unshare-pid",
    "--unshare-ipc",
    "--unshare-uts",
    "--unshare-cgroup",
    "--uid",
    String(insideUser.uid),
    "--gid",
    String(insideUser.gid),
    "--hostname",
    "caisson",
    "--disable-userns",
    "--cap-drop",
    "ALL",
    "--die-with-parent",
    "--new-session",
    "--clearenv",
  ]
  for (const [name, value] of Object.entries(job.env)) args.push("--setenv", name, value)
  args.push("--ro-bind", slot.root, "/")
  // bubblewrap leaves settings writable that belong to the call's own namespaces.
  args.push("--proc", "/proc", "--ro-bind", "/proc/sys", "/proc/sys")
  const { masks, file, folder } = slot.blank
  for (const path of masks.files) args.push("--ro-bind", file, path)
  for (const path of masks.folders) args.push("--ro-bind", folder, path)
  args.push("--dev", "/dev", "--bind", slot.shm, "/dev/shm")
  if (job.stdio.kind === "terminal") args.push("--ro-bind", ownSession.program, sessionStep)
  args.push("--remount-ro", "/dev")
  args.push("--bind", slot.tmp, "/tmp")
  args.push("--bind", slot.home, insideUser.home)
  args.push("--bind", slot.workspace, "/workspace")
  if (slot.files !== undefined) args.push("--ro-bind", slot.files, "/run/caisson")
  args.push("--chdir", "/workspace")
  return args
}

/** One word for a POSIX shell, whatever it holds (NUL cannot occur: argv elements have none). */
export const shellWord = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`
