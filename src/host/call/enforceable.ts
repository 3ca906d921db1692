/**
 * What a driver may declare and this host has no control for, whatever the call.
 *
 * Guarantees: a driver that passes can be sealed as far as its own words go; one that does not is dropped from the
 * route and shown as unavailable, with what to change. Pure. Does not: ask the machine; the sandbox does.
 */
import { cliOf } from "../../manifest/kinds/body.ts"
import { parseGlob } from "../../manifest/globs.ts"
import type { DriverContract } from "../../manifest/types.ts"
import { sealPaths } from "./seal-paths.ts"

export interface Unenforceable {
  readonly control: string
  readonly reason: string
  readonly fix: string
}

/** `in-process` is honoured as a subprocess, as the spec has it for code that nobody vouches for. */
const badRunner = ({ id, runner }: DriverContract): Unenforceable | undefined => {
  if (runner === undefined) return undefined
  if (runner.form !== "inline")
    return {
      control: "runner",
      reason: `${id} declares a runner that this host does not have`,
      fix: "use the engine subprocess or sandbox, as in `runner: { engine: subprocess }`",
    }
  if (runner.image === undefined) return undefined
  return {
    control: "runner-image",
    reason: `${id} declares a runner image, and the namespace backend runs the host's own programs`,
    fix: "remove `runner.image` from the driver",
  }
}

/** A pattern that the sandbox could not read must not be passed over: it may be the one that hides something. */
const badPattern = ({ body, auth, implements: entries, source }: DriverContract): Unenforceable | undefined => {
  const sandboxes = [cliOf({ body })?.sandbox, ...entries.map((entry) => entry.cli?.sandbox)]
  for (const sandbox of sandboxes) {
    if (sandbox === undefined) continue
    const { read, write, deny, keep } = sealPaths(sandbox.fs, auth?.state.paths ?? [])
    for (const text of [...read, ...write, ...deny, ...keep]) {
      const parsed = parseGlob(text)
      if (!parsed.ok)
        return {
          control: "fs",
          reason: `${source.file}: a pattern of \`sandbox.fs\` cannot be used: ${parsed.message}`,
          fix: "correct the pattern, as in `notes/**/*.md`",
        }
    }
  }
  return undefined
}

export const unenforceable = (contract: DriverContract): Unenforceable | undefined => {
  if (contract.ingress.length > 0)
    return {
      control: "ingress",
      reason: `${contract.id} declares ingress (${contract.ingress.join(", ")}), which this host cannot offer`,
      fix: "remove `network.ingress` from the driver",
    }
  return badRunner(contract) ?? badPattern(contract)
}
