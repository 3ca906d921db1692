/**
 * Where a path inside a sandbox lies, and what a person should hear of it. Pure.
 *
 * Programs ask for many files that are not there: of those, the ones that were somebody's to keep (keys, other people's
 * folders, what the view hides) are told; the rest is only in the record.
 */
type Place = "workspace" | "home" | "scratch" | "kernel" | "own" | "system" | "outside"

const within = (path: string, folder: string): boolean => path === folder || path.startsWith(`${folder}/`)
const places: readonly (readonly [string, Place])[] = [
  ["/workspace", "workspace"],
  ["/home/tool", "home"],
  ["/tmp", "scratch"],
  ["/var/tmp", "scratch"],
  ["/dev/shm", "scratch"],
  ["/proc", "kernel"],
  ["/sys", "kernel"],
  ["/dev", "kernel"],
  ["/run/caisson", "own"],
  ...["/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc", "/opt/driver", "/var", "/run"].map(
    (folder) => [folder, "system"] as const,
  ),
]

export const placeOf = (path: string): Place =>
  path === "/" ? "system" : (places.find(([folder]) => within(path, folder))?.[1] ?? "outside")

const programFolders = ["/usr/local/bin", "/usr/bin", "/bin", "/usr/local/sbin", "/usr/sbin", "/sbin", "/usr/games"]
export const isProgramPath = (path: string): boolean => programFolders.includes(path.slice(0, path.lastIndexOf("/")))

/** Of the system: what is kept from ordinary users, and doors to the machine. */
const guarded =
  /^\/etc\/(?:g?shadow-?|sudoers(?:\.d)?|ssh|ssl\/private|krb5\.keytab|machine-id|security)(?:\/|$)|^(?:\/var)?\/run\/(?:docker|containerd|podman|user|dbus|systemd\/private)/
/** Of a home: what opens other doors, or starts with the next shell. */
const credentials =
  /^\/home\/tool\/(?:\.ssh|\.aws|\.azure|\.gnupg|\.kube|\.docker|\.netrc|\.pgpass|\.git-credentials|\.pypirc|\.config\/(?:gh|gcloud|op|hub|rclone|sops)|\.vault-token|\.password-store|\.mozilla|\.config\/google-chrome|\.local\/share\/keyrings)(?:\/|$)/
const started =
  /^\/home\/tool\/\.(?:bash(?:rc|_profile|_login|_logout|_aliases)|profile|zsh(?:rc|env)|zprofile|zlogin|inputrc|vimrc|gitconfig|config\/(?:autostart|fish|systemd|git)|ssh|npmrc|gnupg|aws|local\/bin|pam_environment|xprofile|xsession)(?:\/|$)/

export const isGuarded = (path: string): boolean => guarded.test(path)
export const isCredential = (path: string): boolean => credentials.test(path)
export const isStarted = (path: string): boolean => started.test(path)
/** What interpreters try to keep beside their libraries, and do without. */
export const isCache = (path: string): boolean => /\/__pycache__(?:\/|$)/.test(path)
