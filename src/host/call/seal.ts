/**
 * Step 5: contract ∩ driver ∩ host policy → one immutable profile, and the job that runs under it.
 *
 * Guarantees: nothing is wider than the driver declares, the contract allows and the operator permits; the profile is
 * frozen and its digest goes into the receipt. What is declared and cannot be enforced here ends the call before
 * anything runs. The command line is built without a shell.
 */
import { createHash } from "node:crypto"
import { join } from "node:path"
import { digestOf } from "../../manifest/digest.ts"
import { deepFreeze } from "../../manifest/freeze.ts"
import type { CliSpec, JsonObject } from "../../manifest/types.ts"
import type { Job, SandboxProfile } from "../../sandbox/backend.ts"
import { parseGlob } from "../../sandbox/globs.ts"
import type { Failure } from "../invoke/failure.ts"
import { outputFormat, withJsonFlag } from "../invoke/format.ts"
import { effectiveRetry } from "../invoke/retry.ts"
import { expandArgv, expandStdin } from "../invoke/template.ts"
import type { HostCore } from "./core.ts"
import { sealEnv } from "./seal-env.ts"
import { sealLimits } from "./seal-limits.ts"
import { channelFor, egressOf, policyFor } from "./seal-network.ts"
import { type SealedPaths, sealPaths } from "./seal-paths.ts"
import { executablesFor, insidePath } from "./seal-programs.ts"
import type { Sealed, SignedIn, Step } from "./steps.ts"

/** `in-process` is honoured as a subprocess, as the spec has it for code that nobody vouches for. */
const ENGINES: readonly unknown[] = ["subprocess", "sandbox", "in-process"]

const unavailable = (control: string, message: string, fix: string): Failure => ({
  ok: false,
  code: "sandbox_unavailable",
  message,
  hint: fix,
  details: { control },
})

/** What a driver may declare and this host has no control for. */
const unenforceable = ({ driver: { contract } }: SignedIn): Failure | undefined => {
  if (contract.ingress.length > 0)
    return unavailable(
      "ingress",
      `${contract.id} declares ingress (${contract.ingress.join(", ")}), which this host cannot offer`,
      "remove `network.ingress` from the driver",
    )
  const { runner } = contract
  if (runner === undefined || runner === null) return undefined
  const block: JsonObject =
    typeof runner === "object" && !Array.isArray(runner) ? (runner as JsonObject) : { engine: runner }
  const inline = typeof block["inline"] === "object" ? (block["inline"] as JsonObject) : block
  const elsewhere = block["ref"] !== undefined || block["file"] !== undefined
  if (elsewhere || !ENGINES.includes(inline["engine"] ?? "subprocess"))
    return unavailable(
      "runner",
      `${contract.id} declares a runner that this host does not have`,
      "use the engine subprocess or sandbox",
    )
  if (inline["image"] !== undefined)
    return unavailable(
      "runner-image",
      `${contract.id} declares a runner image, and the namespace backend runs the host's own programs`,
      "remove `runner.image` from the driver",
    )
  return undefined
}

/** A pattern that the sandbox could not read must not be passed over: it may be the one that hides something. */
const badPattern = ({ driver: { contract } }: SignedIn, paths: SealedPaths): Failure | undefined => {
  for (const text of [...paths.read, ...paths.write, ...paths.deny, ...paths.keep]) {
    const parsed = parseGlob(text)
    if (!parsed.ok)
      return {
        ok: false,
        code: "manifest_invalid",
        message: `${contract.source.file}: a pattern of \`sandbox.fs\` cannot be used: ${parsed.message}`,
        details: { file: contract.source.file },
      }
  }
  return undefined
}

/** The folder that keeps one driver's state for one workspace and one user, of no use to any other. */
const homeFolder = (core: HostCore, { driver, workspace, user }: SignedIn): string => {
  const name = createHash("sha256")
    .update(JSON.stringify([driver.key, workspace, user]))
    .digest("hex")
    .slice(0, 32)
  return join(core.data, "homes", name)
}

export const profileDigest = (profile: SandboxProfile): string =>
  digestOf({
    ...profile,
    files: Object.fromEntries(
      Object.entries(profile.files).map(([path, bytes]) => [path, createHash("sha256").update(bytes).digest("hex")]),
    ),
  })

const jobFor = (signedIn: SignedIn, cli: CliSpec): Step<{ job: Job; format: Sealed["format"] }> => {
  const { route, context, workspace, tool } = signedIn
  const { binding, implementation, mappedInput } = route
  const values = { input: mappedInput, context }
  const expanded = binding.argv === undefined ? { ok: true as const, argv: [] } : expandArgv(binding.argv, values)
  if (!expanded.ok) return expanded
  const stdin =
    binding.stdin === undefined ? { ok: true as const, bytes: new Uint8Array() } : expandStdin(binding.stdin, values)
  if (!stdin.ok) return stdin
  const format = outputFormat(cli.output, implementation.cli, tool.outputs)
  const own = withJsonFlag(expanded.argv, cli.output, format, binding.argv?.positionalFrom ?? Number.POSITIVE_INFINITY)
  return {
    ok: true,
    value: { job: { argv: [insidePath(signedIn), ...cli.binArgs, ...own], stdin: stdin.bytes, workspace }, format },
  }
}

type SealedProfile = Pick<Sealed, "profile" | "profileDigest" | "egress" | "timeout" | "retry" | "notes"> & {
  readonly passed: readonly string[]
  readonly cli: CliSpec
}

/** The profile that a call of this route gets, whatever its input. */
export const sealProfile = (core: HostCore, signedIn: SignedIn): Step<SealedProfile> => {
  const {
    tool,
    driver: { contract },
    route: { implementation },
  } = signedIn
  const refused = unenforceable(signedIn)
  if (refused !== undefined) return refused
  const { cli } = contract
  if (cli === undefined) return unavailable("cli", `${contract.id} has no command to run`, "give the driver a `bin`")
  const sandbox = implementation.cli?.sandbox ?? cli.sandbox
  const entries = egressOf(core, signedIn)
  const network = entries.length === 0 ? "none" : channelFor(entries)
  const paths = sealPaths(sandbox.fs, contract.auth?.state.paths ?? [])
  const unreadable = badPattern(signedIn, paths)
  if (unreadable !== undefined) return unreadable
  const env = sealEnv(
    sandbox.env,
    core.config.env,
    sandbox.tty.required,
    network === "none" ? undefined : network.proxyPort,
  )
  const { executables, absent } = executablesFor(core, signedIn, sandbox.exec)
  const speakers = { tool, driver: contract, implementation }
  const { limits, required, timeout } = sealLimits(speakers, core.config)
  const home = paths.keep.length === 0 ? undefined : { dir: homeFolder(core, signedIn), keep: paths.keep }
  const profile: SandboxProfile = deepFreeze({
    executables,
    view: { read: paths.read, deny: paths.deny },
    write: paths.write,
    ...(home === undefined ? {} : { home }),
    env: env.env,
    tty: sandbox.tty.required,
    network,
    limits,
    required,
    files: {},
  })
  const notes = [
    ...paths.notes,
    ...env.notes,
    ...(absent.length === 0 ? [] : [`exec.spawn names programs that are not on this machine: ${absent.join(", ")}`]),
  ]
  const egress = network === "none" ? {} : { egress: policyFor(core, signedIn, entries) }
  return {
    ok: true,
    value: {
      cli,
      profile,
      profileDigest: profileDigest(profile),
      passed: env.passed,
      timeout,
      retry: effectiveRetry(speakers),
      notes,
      ...egress,
    },
  }
}

export const seal = (core: HostCore, signedIn: SignedIn): Step<Sealed> => {
  const sealed = sealProfile(core, signedIn)
  if (!sealed.ok) return sealed
  const { cli, passed: _passed, ...rest } = sealed.value
  const made = jobFor(signedIn, cli)
  return made.ok ? { ok: true, value: { ...signedIn, ...rest, ...made.value } } : made
}
