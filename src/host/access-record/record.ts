/**
 * A run's access record, and the denials that follow from it. Pure.
 *
 * Guarantees: what the proxy and the kernel's taps saw of the network and what was observed of paths are one record; what a
 * person should hear of is among the denials too, in the words that `denied` has.
 */
import type { Denial, Observed, ObservedPath } from "../../sandbox/backend.ts"
import type { AccessedPath, AccessRecord, DialledHost, StartedProgram } from "./types.ts"

/** Where a sandbox shows them. */
const inside = { workspace: "/workspace", home: "/home/tool", scratch: "/tmp" } as const

const below = (path: string, folder: string): string | undefined =>
  path === folder ? "" : path.startsWith(`${folder}/`) ? path.slice(folder.length + 1) : undefined

const SYSTEM = /^\/(?:usr|bin|sbin|lib|lib32|lib64|libx32|etc|opt\/driver|var|run|proc|sys|dev)(?:\/|$)/

const placed = (path: string): Pick<AccessedPath, "path" | "where"> => {
  const workspace = below(path, inside.workspace)
  if (workspace !== undefined) return { path: workspace === "" ? "." : workspace, where: "workspace" }
  const home = below(path, inside.home)
  if (home !== undefined) return { path: home === "" ? "~" : `~/${home}`, where: "home" }
  if (
    below(path, inside.scratch) !== undefined ||
    below(path, "/var/tmp") !== undefined ||
    below(path, "/dev/shm") !== undefined
  )
    return { path, where: "scratch" }
  return { path, where: path === "/" || SYSTEM.test(path) ? "system" : "outside" }
}

const pathOf = ({ path, verdict, reason, folder, count, bytes }: ObservedPath): AccessedPath => ({
  ...placed(path),
  verdict,
  ...(reason === undefined ? {} : { reason }),
  ...(folder === undefined ? {} : { folder }),
  count,
  ...(bytes === undefined ? {} : { bytes }),
})

/** `/usr/bin/*` where there were too many to name. */
const programPath = ({ path, folder }: ObservedPath): string => (folder === true ? `${path}/*` : path)

const programOf = (row: ObservedPath): StartedProgram => {
  const path = programPath(row)
  const { verdict, reason, count } = row
  return {
    name: path.slice(path.lastIndexOf("/") + 1),
    path,
    verdict,
    ...(reason === undefined ? {} : { reason }),
    count,
  }
}

interface Network {
  readonly reached: readonly {
    readonly target: string
    readonly count: number
    readonly bytesOut: number
    readonly bytesIn: number
  }[]
  readonly denied: readonly Denial[]
}

const hostsOf = ({ reached, denied }: Network): readonly DialledHost[] => [
  ...reached.map(({ target, count, bytesOut, bytesIn }) => ({
    target,
    verdict: "allowed" as const,
    count,
    bytes_out: bytesOut,
    bytes_in: bytesIn,
  })),
  ...denied.flatMap(({ layer, target, reason, count }) =>
    layer === "egress" ? [{ target, verdict: "denied" as const, reason, count }] : [],
  ),
]

export const accessOf = (observed: Observed | undefined, network: Network): AccessRecord => {
  const paths = observed?.paths ?? []
  const of = (op: ObservedPath["op"]): readonly ObservedPath[] => paths.filter((row) => row.op === op)
  return {
    means: observed === undefined ? "none" : "seccomp",
    reads: of("read").map(pathOf),
    writes: of("write").map(pathOf),
    programs: of("start").map(programOf),
    hosts: hostsOf(network),
    seen: observed?.seen ?? 0,
    lost: observed?.lost ?? 0,
  }
}

/** What of it is among the denials: each once, however often it was tried. */
export const deniedPaths = (observed: Observed | undefined): readonly Denial[] =>
  (observed?.paths ?? []).flatMap((row): readonly Denial[] => {
    if (row.notable !== true || row.reason === undefined) return []
    const { op, reason, count, path } = row
    if (op === "start") return [{ layer: "exec", reason, target: programPath(row), count }]
    return [
      {
        layer: "fs",
        reason: op === "write" && reason === "not_shown" ? "read_only" : reason,
        target: placed(path).path,
        count,
      },
    ]
  })
