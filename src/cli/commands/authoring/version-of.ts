/** How a program tells its version, found by asking it in a sandbox without network or a layer that is kept. */
import type { Host } from "../../../host/types.ts"

interface ToldVersion {
  readonly cmd: string
  readonly parse: string
  readonly range: string
}

const WAYS = ["--version", "-version", "version", "-V"]
const VERSION = /(\d+)\.(\d+)(?:\.(\d+))?/

/** Undefined: it tells none. */
export const versionOf = async (
  host: Host,
  bin: string,
  exec: readonly string[],
  workspace: string,
  signal: AbortSignal,
): Promise<ToldVersion | undefined> => {
  for (const way of WAYS) {
    const envelope = await host.run({ command: [bin, way], workspace, exec, plan: true }, { signal })
    const value = envelope.ok ? envelope.value : undefined
    const stdout = typeof value === "object" && value !== null && "stdout" in value ? value["stdout"] : ""
    const text = typeof stdout === "string" ? stdout : ""
    const [whole, major, minor, patch] = VERSION.exec(text.slice(0, 4096)) ?? []
    if (whole === undefined) continue
    return {
      cmd: `${bin} ${way}`,
      parse: "(\\d+\\.\\d+(?:\\.\\d+)?)",
      range: `~${Number(major)}.${Number(minor)}.${Number(patch ?? 0)}`,
    }
  }
  return undefined
}
