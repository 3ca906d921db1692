/**
 * `completes_when`: whether somebody is signed in, found out and not believed.
 *
 * Guarantees: each proof of the manifest must hold. What could not be asked (a host that is not reached, a sandbox that
 * is not to be had, a time that ran out) is unclear, and neither signs anyone in nor out.
 */
import type { HttpProbe, LoginProof } from "../../manifest/types.ts"
import { accountIn } from "./account.ts"
import type { LoginDesk } from "./flow.ts"
import { loginLimits } from "./limits.ts"

/** What an address answered to the driver's own credentials. */
export type Asked =
  | { readonly ok: true; readonly status: number; readonly body: string }
  | { readonly ok: false; readonly reason: string }
export type AskAs = (probe: HttpProbe, signal: AbortSignal) => Promise<Asked>

export type Proven =
  | { readonly holds: "yes"; readonly account?: string }
  | { readonly holds: "no" | "unclear"; readonly message: string }

type Prover = Pick<LoginDesk, "run" | "signal" | "tell" | "ask">

const withAccount = (text: string): Proven => {
  const account = accountIn(text)
  return { holds: "yes", ...(account === undefined ? {} : { account }) }
}

const byCommand = async (
  { run, signal }: Prover,
  { cmd, exitCode }: Extract<LoginProof, { by: "cmd" }>,
): Promise<Proven> => {
  const ran = await run({ cmd, timeoutMs: loginLimits.proofMs.value }, signal)
  if (!ran.ran) return { holds: "unclear", message: `the proof could not be run: ${ran.message}` }
  if (ran.exit === exitCode) return withAccount(ran.stdout)
  if (ran.exit === null) return { holds: "unclear", message: "the proof did not end by itself" }
  if (ran.unreachable.length > 0)
    return { holds: "unclear", message: `the proof could not reach ${ran.unreachable.join(", ")}` }
  return { holds: "no", message: `the proof exited with ${ran.exit} instead of ${exitCode}` }
}

const byAddress = async ({ ask, signal }: Prover, { probe }: Extract<LoginProof, { by: "http" }>): Promise<Proven> => {
  const asked = await ask(probe, AbortSignal.any([signal, AbortSignal.timeout(loginLimits.proofMs.value)]))
  const { host } = new URL(probe.url)
  if (!asked.ok) return { holds: "unclear", message: `${host} could not be asked: ${asked.reason}` }
  const { expectStatus } = probe
  const { status } = asked
  const isExpected = expectStatus === undefined ? status >= 200 && status < 300 : status === expectStatus
  if (isExpected) return withAccount(asked.body)
  // Of a service that is ill, or wants to be left alone, nothing is known of the login.
  return status >= 500 || status === 429
    ? { holds: "unclear", message: `${host} answered ${status}` }
    : { holds: "no", message: `${host} answered ${status}` }
}

export const prove = async (prover: Prover, proofs: readonly LoginProof[]): Promise<Proven> => {
  let account: string | undefined
  for (const proof of proofs) {
    prover.tell({ at: "proof", by: proof.by })
    const proven = await (proof.by === "cmd" ? byCommand(prover, proof) : byAddress(prover, proof))
    if (proven.holds !== "yes") return proven
    account ??= proven.account
  }
  return { holds: "yes", ...(account === undefined ? {} : { account }) }
}
