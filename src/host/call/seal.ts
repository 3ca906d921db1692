/**
 * Step 5: contract ∩ driver ∩ host policy → one immutable profile, and the command that runs under it.
 *
 * Guarantees: nothing is wider than the driver declares, the contract allows and the operator permits; the profile is
 * frozen and its digest goes into the receipt. What is declared and cannot be enforced here ends the call before
 * anything runs. The command line is built without a shell.
 */
import { cliOf } from "../../manifest/kinds/body.ts"
import { createHash } from "node:crypto"
import { digestOf } from "../../manifest/digest.ts"
import { deepFreeze } from "../../manifest/freeze.ts"
import type { EgressPolicy } from "../../egress-proxy/types.ts"
import type { CliSpec } from "../../manifest/types.ts"
import type { SandboxProfile } from "../../sandbox/backend.ts"
import { homeFolder } from "../data/homes.ts"
import type { Failure } from "../failure.ts"
import { outputFormat, withJsonFlag } from "../invoke/format.ts"
import { effectiveRetry } from "../invoke/retry.ts"
import { expandArgv, expandStdin } from "../invoke/template.ts"
import type { HostCore } from "./core.ts"
import { unenforceable } from "./enforceable.ts"
import { sealEnv } from "./seal-env.ts"
import { sealLimits } from "./seal-limits.ts"
import { channelFor, egressOf, policyFor } from "./seal-network.ts"
import { sealPaths } from "./seal-paths.ts"
import { executablesFor, insidePath } from "./seal-programs.ts"
import type { Sealed, SignedIn, Step } from "./steps.ts"

const unavailable = (control: string, message: string, fix: string): Failure => ({
  ok: false,
  code: "sandbox_unavailable",
  message,
  hint: fix,
  details: { control },
})

const homeOf = (core: HostCore, { driver, folder, user }: SignedIn): string =>
  homeFolder(core.data, core.catalogue, {
    driver: driver.key,
    file: driver.contract.source.file,
    workspace: folder.identity,
    user,
  })

/** Of all that is sealed: what the sandbox is given, and what its proxy lets through. Secrets are named, never digested. */
export const profileDigest = (profile: SandboxProfile, egress?: EgressPolicy): string =>
  digestOf({
    ...profile,
    ...(egress === undefined
      ? {}
      : {
          egress: {
            ...egress,
            entries: egress.entries.map((entry) => entry.text),
            substitutions: egress.substitutions.map(({ value: _value, ...bound }) => bound),
          },
        }),
    files: Object.fromEntries(
      Object.entries(profile.files).map(([path, bytes]) => [path, createHash("sha256").update(bytes).digest("hex")]),
    ),
  })

const commandFor = (signedIn: SignedIn, cli: CliSpec): Step<Pick<Sealed, "command" | "format">> => {
  const { route, context, tool } = signedIn
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
    value: {
      command: { argv: [insidePath(signedIn), ...cli.binArgs, ...own], stdin: stdin.bytes },
      format,
    },
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
  const refused = unenforceable(contract)
  if (refused !== undefined) return unavailable(refused.control, refused.reason, refused.fix)
  const cli = cliOf(contract)
  if (cli === undefined) return unavailable("cli", `${contract.id} has no command to run`, "give the driver a `bin`")
  const sandbox = implementation.cli?.sandbox ?? cli.sandbox
  const entries = egressOf(core, signedIn)
  const network = entries.length === 0 ? "none" : channelFor(entries)
  const paths = sealPaths(sandbox.fs, contract.auth?.state.paths ?? [])
  const env = sealEnv(
    sandbox.env,
    core.config.env,
    sandbox.tty.required,
    network === "none" ? undefined : network.proxyPort,
  )
  const { executables, absent } = executablesFor(core, signedIn, sandbox.exec)
  const speakers = { tool, driver: contract, implementation }
  const { limits, required, timeout } = sealLimits(speakers, core.config)
  const home = paths.keep.length === 0 ? undefined : { dir: homeOf(core, signedIn), keep: paths.keep }
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
  const egress = network === "none" ? undefined : policyFor(core, signedIn, entries)
  return {
    ok: true,
    value: {
      cli,
      profile,
      profileDigest: profileDigest(profile, egress),
      passed: env.passed,
      timeout,
      retry: effectiveRetry(speakers),
      notes,
      ...(egress === undefined ? {} : { egress }),
    },
  }
}

export const seal = (core: HostCore, signedIn: SignedIn): Step<Sealed> => {
  const sealed = sealProfile(core, signedIn)
  if (!sealed.ok) return sealed
  const { cli, passed: _passed, ...rest } = sealed.value
  const made = commandFor(signedIn, cli)
  return made.ok ? { ok: true, value: { ...signedIn, ...rest, ...made.value } } : made
}
