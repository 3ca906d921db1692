/** The sealed profile, readable. Pure. Values of the environment are shown: a profile carries no secrets. */
import type { Limits, SandboxProfile } from "../../sandbox/backend.ts"
import { inline } from "../visible.ts"

const megabytes = (bytes: number): string => `${Math.round(bytes / 2 ** 20)} MiB`

const limitText: { readonly [Name in keyof Limits]-?: (value: number) => string } = {
  wallMs: (value) => `${value / 1000} s wall clock`,
  memoryBytes: (value) => `${megabytes(value)} memory`,
  pids: (value) => `${value} processes`,
  cpuMs: (value) => `${value / 1000} s CPU`,
  cpus: (value) => `${value} cores`,
  diskBytes: (value) => `${megabytes(value)} written`,
  outputBytes: (value) => `${megabytes(value)} of each output stream`,
  openFiles: (value) => `${value} open files`,
}

const list = (items: readonly string[], none: string): string =>
  items.length === 0 ? none : items.map((item) => inline(item)).join(", ")

const networkText = ({ network }: SandboxProfile): string =>
  network === "none"
    ? "none at all"
    : `the declared hosts (\`caisson drivers\`), through the call's own proxy on port ${network.proxyPort}`

const limitsText = (profile: SandboxProfile): string => {
  const names = Object.keys(limitText) as (keyof Limits)[]
  return names
    .flatMap((name) => {
      const value = profile.limits[name]
      return value === undefined
        ? []
        : [`${limitText[name](value)}${profile.required.includes(name) ? " (must hold)" : ""}`]
    })
    .join(", ")
}

/** Rows of name and text. */
export const profileRows = (profile: SandboxProfile): readonly (readonly [string, string])[] => [
  ["program", inline(profile.executables.program)],
  [
    "children",
    profile.executables.children ? list(Object.values(profile.executables.spawn), "only of its own program") : "none",
  ],
  ["network", networkText(profile)],
  ["reads", list(profile.view.read, "nothing of the workspace")],
  ["hidden", list(profile.view.deny, "nothing")],
  ["writes", list(profile.write, "nothing of the workspace")],
  ["home", profile.home === undefined ? "private and empty" : list(profile.home.keep, "kept")],
  [
    "env",
    list(
      Object.entries(profile.env).map(([name, value]) => `${name}=${value}`),
      "empty",
    ),
  ],
  ["terminal", profile.tty ? "yes" : "no"],
  ["limits", limitsText(profile)],
]
