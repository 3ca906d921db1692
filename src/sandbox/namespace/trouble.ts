/** Why a launcher could not be had, and what an operator can do: from what the machine says of itself. */
import { existsSync, readFileSync } from "node:fs"

const readSetting = (path: string): string | undefined => {
  try {
    return readFileSync(path, "utf8").trim()
  } catch {
    return undefined
  }
}

/** Why namespaces cannot be made here, from what the machine says of itself. */
export const namespaceTrouble = (stderr: string): { message: string; fix: string } => {
  if (readSetting("/proc/sys/kernel/apparmor_restrict_unprivileged_userns") === "1") {
    return {
      message:
        "AppArmor on this machine forbids unprivileged user namespaces (kernel.apparmor_restrict_unprivileged_userns=1)",
      fix: "run caisson as root, or add an AppArmor profile for its node with `userns,`, or `sudo sysctl kernel.apparmor_restrict_unprivileged_userns=0`",
    }
  }
  if (readSetting("/proc/sys/kernel/unprivileged_userns_clone") === "0") {
    return {
      message: "this kernel forbids unprivileged user namespaces (kernel.unprivileged_userns_clone=0)",
      fix: "run caisson as root, or `sudo sysctl kernel.unprivileged_userns_clone=1`",
    }
  }
  if (readSetting("/proc/sys/user/max_user_namespaces") === "0") {
    return {
      message: "this machine allows no user namespaces (user.max_user_namespaces=0)",
      fix: "`sudo sysctl user.max_user_namespaces=15000`",
    }
  }
  if (existsSync("/.dockerenv") || existsSync("/run/.containerenv")) {
    return {
      message: "this is a container whose engine forbids new namespaces or mounts",
      fix: "start it with `--security-opt seccomp=unconfined --security-opt apparmor=unconfined --cap-add SYS_ADMIN`, or use `--backend docker` with the engine's socket",
    }
  }
  return {
    message: `namespaces could not be made here${stderr === "" ? "" : `: ${stderr}`}`,
    fix: "run as root, or on a kernel with user namespaces, overlayfs and seccomp",
  }
}

/** What `unshare` says, and ends with an exit code, where what it started was ended by a signal that it cannot pass on. */
const CHILD_KILLED = /^unshare: sigprocmask .*$/m

/** A launcher that was ready and is no more: by whom, as far as that is known, and its last words. */
export const launcherEnded = (signal: string | null, stderr: string): string => {
  const said = stderr.replace(CHILD_KILLED, "").trim()
  const killed = signal !== null || CHILD_KILLED.test(stderr) || said === ""
  const how = killed ? `was ended from outside${signal === null ? "" : ` (${signal})`}` : "ended"
  return `the sandbox launcher ${how}${said === "" ? "" : `: ${said}`}; the next call starts a new one`
}
export const endedFix =
  "call again; if it happens again, look for who ends it, or in the kernel's log for the out-of-memory killer (`dmesg`)"

/** Ended by a signal, which says nothing about what this machine can do: what it wrote last may say why. */
export const killedTooSoon = (signal: string, stderr: string): { message: string; fix: string } => ({
  message: `the sandbox launcher was ended (${signal}) before it was ready${stderr === "" ? "" : `: ${stderr}`}`,
  fix: "call again; if it happens again, look in the kernel's log for the out-of-memory killer or a crash (`dmesg`)",
})
