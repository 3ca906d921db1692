/**
 * Step 5: contract ∩ driver ∩ host policy → one immutable profile, and the command that runs under it.
 *
 * Guarantees: nothing is wider than the driver declares, the contract allows and the operator permits; the profile is
 * frozen and its digest goes into the receipt. What is declared and cannot be enforced here ends the call before
 * anything runs. What a driver of its kind needs and runs is asked of the kind; what it gets is decided here.
 */
import { createHash } from "node:crypto"
import type { EgressPolicy } from "../../egress-proxy/types.ts"
import { digestOf } from "../../manifest/values/digest.ts"
import { deepFreeze } from "../../manifest/values/freeze.ts"
import { trustEnvironment } from "../../egress-proxy/tls/trust.ts"
import { homeFolder } from "../data/homes.ts"
import type { DriverKindModule, KindCall } from "../drivers/kind.ts"
import { kindOf, unserved } from "../drivers/kinds.ts"
import { inside, sealPaths } from "../drivers/paths.ts"
import { operationKey } from "../invoke/operation-key.ts"
import { effectiveRetry } from "../invoke/retry.ts"
import type { JsonObject } from "../../manifest/types.ts"
import type { CallProfile } from "../types.ts"
import type { HostCore } from "./core.ts"
import { unenforceable } from "./sealing/enforceable.ts"
import { notEnforced } from "./sealing/not-enforced.ts"
import { sealEnv } from "./sealing/env.ts"
import { sealFiles } from "./sealing/files.ts"
import { sealLimits } from "./sealing/limits.ts"
import { sealSecrets } from "./sealing/secrets.ts"
import { sealTokens } from "./sealing/tokens.ts"
import { homeFor } from "./sealing/home.ts"
import { channelFor, egressOf, policyFor } from "./sealing/network.ts"
import type { Routed, Sealed, SignedIn, Step } from "./steps.ts"

const homeOf = (core: HostCore, { driver, folder, user }: SignedIn): string =>
  homeFolder(core.data, core.catalogue, {
    driver: driver.key,
    file: driver.contract.source.file,
    workspace: folder.identity,
    user,
  })

/** Of all that is sealed: what the sandbox is given, and what its proxy lets through. Secrets are named, never digested. */
const profileDigest = (profile: CallProfile, secrets: readonly JsonObject[], egress?: EgressPolicy): string =>
  digestOf({
    ...profile,
    ...(secrets.length === 0 ? {} : { secrets: [...secrets] }),
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

/** The call as its driver's kind is asked about it. */
export const kindCall = ({
  tool,
  driver,
  route,
  context,
  program,
  layers,
  module,
  image,
  builtins,
  operation,
}: Routed): KindCall => ({
  tool,
  driver,
  binding: route.binding,
  input: route.mappedInput,
  context,
  operation: operationKey(operation, driver.key),
  ...(program === undefined ? {} : { program }),
  ...(layers === undefined ? {} : { layers }),
  ...(module === undefined ? {} : { module }),
  ...(image === undefined ? {} : { image }),
  ...(builtins === undefined ? {} : { builtins }),
})

type SealedProfile = Pick<
  Sealed,
  "profile" | "profileDigest" | "sealedSecrets" | "egress" | "timeout" | "retry" | "notes"
> & {
  /** names whose values came from the operator's config */
  readonly passed: readonly string[]
  readonly kind: DriverKindModule
}

/** The environment of a call that runs no program. */
const nobodys: ReturnType<typeof sealEnv> = { env: {}, passed: [], notes: [] }

/** The profile that a call of this route gets, whatever its input. */
export const sealProfile = (core: HostCore, signedIn: SignedIn): Step<SealedProfile> => {
  const {
    tool,
    driver: { contract },
    route: { implementation },
  } = signedIn
  const refused = unenforceable(contract, core.config.backend)
  if (refused !== undefined) return notEnforced({ control: refused.control, message: refused.reason, fix: refused.fix })
  const kind = kindOf(contract)
  if (kind === undefined) {
    const { code, reason, fix } = unserved(contract)
    return { ok: false, code, message: reason, hint: fix, details: { driver: signedIn.driver.key } }
  }
  const asked = kind.needs(kindCall(signedIn), core.findProgram)
  if (!asked.ok) return asked
  const needs = asked.value
  const entries = egressOf(core, tool, needs.egress)
  const { tape } = signedIn
  const network = entries.length === 0 ? "none" : channelFor(entries)
  const secrets = sealSecrets(signedIn.secrets, entries)
  if (!secrets.ok) return secrets
  const { placeholders, substitutions, facts } = secrets.value
  // What the host itself asks for has no program that tokens could be kept from.
  const sealedTokens = needs.executables === undefined ? undefined : sealTokens(core.config, signedIn.driver, entries)
  if (sealedTokens?.ok === false) return sealedTokens
  const tokens = sealedTokens?.value
  if (tape !== undefined && tokens?.capture !== undefined)
    return {
      ok: false,
      code: "tool_unavailable",
      message: "this driver gets tokens that are kept out of its sandbox, which can neither be recorded nor replayed",
      hint: "leave --record or --replay away",
      details: { driver: signedIn.driver.key },
    }
  const given = new Set(signedIn.secrets.map(({ name }) => name))
  const paths = sealPaths(needs.fs, contract.auth?.state.paths ?? [])
  const env =
    needs.executables === undefined
      ? nobodys
      : sealEnv(
          { ...needs.env, pass: needs.env.pass.filter((name) => !given.has(name)) },
          core.config.env,
          needs.tty,
          network === "none" ? undefined : network.proxyPort,
        )
  const speakers = { tool, driver: contract, implementation }
  const { limits, required, timeout } = sealLimits(speakers, core.config)
  const exchange = sealFiles(tool, signedIn.call, paths.deny)
  if (!exchange.ok) return exchange
  const profile: CallProfile = deepFreeze({
    ...(needs.executables === undefined ? {} : { executables: needs.executables }),
    view: { read: paths.read, deny: paths.deny },
    write: paths.write,
    ...homeFor(core.homes, contract, homeOf(core, signedIn), paths.keep, secrets.value.files),
    env:
      needs.executables === undefined
        ? env.env
        : {
            ...env.env,
            ...placeholders,
            ...(tape === undefined || network === "none" ? {} : trustEnvironment(inside.authority)),
            ...tokens?.env,
          },
    tty: needs.tty,
    ...(needs.privatePipes === true ? { privatePipes: true } : {}),
    ...(needs.startsIn === undefined ? {} : { startsIn: needs.startsIn }),
    network,
    limits,
    required,
    files: {},
    ...(exchange.value === undefined ? {} : { exchange: exchange.value }),
  })
  const policy = network === "none" ? undefined : policyFor(core, signedIn, entries, substitutions)
  const capture = tokens?.capture
  const egress = policy === undefined || capture === undefined ? policy : { ...policy, capture }
  return {
    ok: true,
    value: {
      kind,
      profile,
      profileDigest: profileDigest(profile, facts, egress),
      sealedSecrets: secrets.value,
      passed: env.passed,
      timeout,
      retry: effectiveRetry(speakers),
      notes: [...paths.notes, ...env.notes, ...needs.notes],
      ...(egress === undefined ? {} : { egress }),
    },
  }
}

/** The profile with the command that this call's input makes. */
export const sealCommand = (signedIn: SignedIn, { passed: _passed, ...sealed }: SealedProfile): Step<Sealed> => {
  const call = kindCall(signedIn)
  const made = sealed.kind.command(call)
  if (!made.ok) return made
  const commandFacts = sealed.kind.evidence(call, made.value)
  return { ok: true, value: { ...signedIn, ...sealed, command: made.value, commandFacts } }
}

/** The command as it is shown to people. */
export const commandWords = ({ command }: Sealed): readonly string[] =>
  command.run === "hosted" ? command.shown : command.argv

export const seal = (core: HostCore, signedIn: SignedIn): Step<Sealed> => {
  const sealed = sealProfile(core, signedIn)
  return sealed.ok ? sealCommand(signedIn, sealed.value) : sealed
}
