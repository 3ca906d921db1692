/** The sealed profile, readable. Pure. Values of the environment are shown: a profile carries no secrets. */
import type { Limits } from "../../sandbox/backend.ts"
import type { ToldWhy } from "../../host/questions/told.ts"
import type { CallProfile } from "../../host/types.ts"

/** What is shown of a profile says nothing of the files placed in it. */
type Shown = Omit<CallProfile, "files">
import { inline, nameText } from "../visible.ts"

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

const networkText = ({ network, executables }: Shown, egress: readonly string[]): string => {
  if (network === "none") return "none at all"
  const way = executables === undefined ? "" : ` on port ${network.proxyPort}`
  return `${list(egress, "no host")}, through the call's own proxy${way}`
}

const programRows = ({ executables }: Shown): readonly (readonly [string, string])[] =>
  executables === undefined
    ? [["program", "none: the host itself acts, without a sandbox"]]
    : [
        ["program", inline(executables.program)],
        ["children", executables.children ? list(Object.values(executables.spawn), "only of its own program") : "none"],
      ]

/** Those that mean something where no program runs. */
const ownLimits: ReadonlySet<keyof Limits> = new Set(["wallMs", "outputBytes"])

const limitsText = (profile: Shown): string => {
  const names = (Object.keys(limitText) as (keyof Limits)[]).filter(
    (name) => profile.executables !== undefined || ownLimits.has(name),
  )
  return names
    .flatMap((name) => {
      const value = profile.limits[name]
      return value === undefined
        ? []
        : [`${limitText[name](value)}${profile.required.includes(name) ? " (must hold)" : ""}`]
    })
    .join(", ")
}

const approvalText = ({ approval }: ToldWhy): string =>
  approval === undefined
    ? "unknown"
    : `${inline(approval.class)}: ${approval.effects === "ask" ? "a person is asked before effects are kept" : "effects are kept without a question"}`

/** Files of the contract, by the names that the tool has for them. */
const fileRows = ({ exchange }: Shown): readonly (readonly [string, string])[] => {
  if (exchange === undefined) return []
  const taken = exchange.inputs.map(
    ({ name, path, writable }) => `${name} from ${path}${writable ? "" : ", read-only"}`,
  )
  const given = exchange.outputs.map(({ name, path }) => `${name} to ${path}`)
  return [
    ["files in", list(taken, "none")],
    ["files out", list(given, "none")],
  ]
}

/** What a program finds around it. */
const surroundingRows = (profile: Shown): readonly (readonly [string, string])[] => [
  ["home", profile.home === undefined ? "private and empty" : list(profile.home.keep, "kept")],
  [
    "env",
    list(
      Object.entries(profile.env).map(([name, value]) => `${name}=${value}`),
      "empty",
    ),
  ],
  ["terminal", profile.tty ? "yes" : "no"],
]

/** What the call would run, reach and change: rows of name and text. */
export const profileRows = (report: ToldWhy, profile: Shown): readonly (readonly [string, string])[] => [
  ["command", (report.argv ?? []).map((word) => nameText(word)).join(" ")],
  ["mutates", list(report.mutates ?? [], "nothing")],
  ["approval", approvalText(report)],
  ...programRows(profile),
  ["network", networkText(profile, report.egress ?? [])],
  ["reads", list(profile.view.read, "nothing of the workspace")],
  ["hidden", list(profile.view.deny, "nothing")],
  ["writes", list(profile.write, "nothing of the workspace")],
  ...fileRows(profile),
  ...(profile.executables === undefined ? [] : surroundingRows(profile)),
  ["limits", limitsText(profile)],
]
