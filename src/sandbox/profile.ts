/**
 * A profile split into the shape that a sandbox is made in and the job that it is given. Pure.
 *
 * Guarantees: nothing of the profile is lost or said twice; what may differ between the runs of one profile (the words
 * of the command, what is left of the time, files made for this run) is in the job alone.
 */
import type { HomeContent, Job, SandboxProfile, SandboxShape, Stdio, Unavailable } from "./backend.ts"

export const shapeOf = (profile: SandboxProfile): SandboxShape => {
  const { memoryBytes, pids, cpus, openFiles } = profile.limits
  return {
    executables: profile.executables,
    network: profile.network,
    privatePipes: profile.privatePipes ?? false,
    limits: { memoryBytes, pids, openFiles, ...(cpus === undefined ? {} : { cpus }) },
    required: profile.required,
  }
}

/** The size of a terminal that nobody looks at. */
const unseen: Stdio = { kind: "terminal", columns: 80, rows: 24, echo: false }

export interface RunOfProfile extends Pick<Job, "argv" | "workspace"> {
  /** what is left of the time, where that is less than the profile's */
  readonly wallMs?: number
  /** beside the profile's own: path inside → content */
  readonly files?: Job["files"]
  readonly stdio?: Stdio
  readonly observe?: true
  /** of a profile whose home is in memory: what it holds */
  readonly home?: HomeContent
}

const homeOf = ({ home }: SandboxProfile, content: HomeContent | undefined): Pick<Job, "home"> => {
  if (home === undefined) return {}
  const { dir, keep, inMemory } = home
  if (inMemory !== true) return { home: { dir, keep } }
  if (content === undefined) throw new TypeError("a home in memory was not handed over with its job")
  return { home: { content, keep } }
}
/** The host's folder of the home, where it has one. */
export const homeFolderOf = ({ home }: Pick<Job, "home">): string | undefined =>
  home !== undefined && "dir" in home ? home.dir : undefined

export const jobOf = (
  profile: SandboxProfile,
  { argv, workspace, wallMs = profile.limits.wallMs, files, stdio, home, observe }: RunOfProfile,
): Job => {
  const { cpuMs, diskBytes } = profile.limits
  return {
    argv,
    workspace,
    env: profile.env,
    files: { ...profile.files, ...files },
    view: profile.view,
    write: profile.write,
    ...homeOf(profile, home),
    ...(profile.exchange === undefined ? {} : { exchange: profile.exchange }),
    ...(profile.startsScratch === true ? { startsScratch: true as const } : {}),
    ...(profile.startsIn === undefined ? {} : { startsIn: profile.startsIn }),
    ...(observe === undefined ? {} : { observe }),
    limits: { wallMs, diskBytes, ...(cpuMs === undefined ? {} : { cpuMs }) },
    stdio: stdio ?? (profile.tty ? unseen : { kind: "pipes" }),
  }
}

/** What no program can be given as it is, on any backend: a separator of the lists that it is passed in. */
export const unfitJob = ({ argv, env }: Pick<Job, "argv" | "env">): Unavailable | undefined => {
  if (argv.some((word) => word.includes("\0")))
    return {
      ok: false,
      control: "arguments",
      message: "an argument holds a NUL character, which no program can be given",
      fix: "remove it",
    }
  const unfit = Object.entries(env).find(([name, value]) => name === "" || /[=\0]/.test(name) || value.includes("\0"))
  if (unfit === undefined) return undefined
  return {
    ok: false,
    control: "environment",
    message: `the variable ${JSON.stringify(unfit[0])} cannot be passed as it is`,
    fix: "give it a name without `=`, and no NUL characters",
  }
}
