/** The vault that the operator chose: a file of the data folder, or a server. */
import type { OperatorConfig } from "../config/types.ts"
import { openFileVault } from "./file-vault.ts"
import type { Vault } from "./vault.ts"

const closesNothing = async (): Promise<void> => undefined

/** What speaks to a server is loaded only where there is one. */
export const openVault = async (
  data: string,
  { vault }: Pick<OperatorConfig, "vault">,
): Promise<Vault & AsyncDisposable> => {
  if (vault === undefined) return { ...openFileVault(data), [Symbol.asyncDispose]: closesNothing }
  return (await import("./kv/kv-vault.ts")).openKvVault(vault)
}
