/**
 * A sandbox's shape → bubblewrap's arguments. Pure.
 *
 * Every namespace is named: `--unshare-all` would go on without one that the kernel refuses. Nothing of a job is in
 * them: what it brings is mounted on these folders later, and shows through. Nor are the masks over /proc, which are laid
 * when it is done (`proc-cover.ts`).
 */
import type { EmptyMounts } from "../../layers/empty-mounts.ts"

interface SandboxPaths extends Pick<EmptyMounts, "workspace" | "home" | "tmp" | "shm" | "files"> {
  readonly root: string
}

const insideUser = { uid: 1000, gid: 1000, home: "/home/tool" } as const

export const bwrapArguments = (slot: SandboxPaths): string[] => {
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
  args.push("--ro-bind", slot.root, "/")
  // bubblewrap leaves settings writable that belong to the call's own namespaces.
  args.push("--proc", "/proc", "--ro-bind", "/proc/sys", "/proc/sys")
  args.push("--dev", "/dev", "--bind", slot.shm, "/dev/shm")
  args.push("--remount-ro", "/dev")
  args.push("--bind", slot.tmp, "/tmp")
  args.push("--bind", slot.home, insideUser.home)
  args.push("--ro-bind", slot.workspace, "/workspace")
  args.push("--ro-bind", slot.files, "/run/caisson")
  // The workspace is not there yet: whoever waits inside goes to it with its job, and keeps hold of what it covers.
  args.push("--chdir", "/workspace")
  return args
}

/** One word for a POSIX shell, whatever it holds (NUL cannot occur: argv elements have none). */
export const shellWord = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`
