/**
 * The home that a driver is given, and whether what it keeps there is encrypted.
 *
 * Guarantees: a driver that logs in or is set up there, or declares state of its login (`auth.state.paths`), has a home that
 * lies on no disk in the clear, and so has one whose home was encrypted before, whatever its manifest says by now. Any
 * other keeps caches, as large as they come, in a folder of the host's.
 */
import { mkdirSync } from "node:fs"
import type { DriverContract } from "../../../manifest/types.ts"
import type { HomeContent, SandboxProfile } from "../../../sandbox/backend.ts"
import { placeOf } from "../../drivers/paths.ts"
import type { OpenedHome, SealedHomes } from "../../homes/sealed-homes.ts"
import type { VaultAnswer } from "../../secrets/vault.ts"

type Home = NonNullable<SandboxProfile["home"]>

const holdsLogin = ({ auth, setup }: DriverContract): boolean =>
  setup.length > 0 ||
  auth?.login !== undefined ||
  auth?.refresh !== undefined ||
  (auth?.state.paths ?? []).some((path) => placeOf(path).where === "home")

/** `keep`: what of it survives a call; nothing: it is not kept at all */
export const homeFor = (
  homes: Pick<SealedHomes, "has">,
  contract: DriverContract,
  dir: string,
  keep: readonly string[],
): { readonly home?: Home } => {
  if (keep.length === 0) return {}
  return { home: { dir, keep, ...(holdsLogin(contract) || homes.has(dir) ? { inMemory: true as const } : {}) } }
}

/** What the job is given of it, and who keeps it afterwards; undefined where the sandbox does, or nobody. */
export const openHome = async (
  homes: SealedHomes,
  { home }: { readonly home?: Home },
): Promise<VaultAnswer<OpenedHome | undefined>> => {
  if (home?.inMemory === true) return homes.open(home.dir, home.keep)
  if (home !== undefined) mkdirSync(home.dir, { recursive: true, mode: 0o700 })
  return { ok: true, value: undefined }
}

export const handedOver = (opened: OpenedHome | undefined): { readonly home?: HomeContent } =>
  opened === undefined ? {} : { home: opened.content }
