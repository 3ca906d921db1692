/**
 * The key that the vault's own key is wrapped under: where it is found, and what it must be.
 *
 * Guarantees: `CAISSON_KEY_FILE`, else the systemd credential `caisson-key`, else `keys/vault.key` of the data folder,
 * which alone is made here, once, with mode 0600. A key that others could read or have written is refused. A vault is
 * never opened under another key than its own, and no new key is made where a vault is already there: that would look as
 * if its secrets were gone. No message holds any of a key.
 */
import { hkdfSync, randomBytes } from "node:crypto"
import { closeSync, fstatSync, openSync, readSync, renameSync, statSync } from "node:fs"
import { join } from "node:path"
import { nextVaultKeyFile, vaultKeyFile } from "../../data-folder/paths.ts"
import { writeWhole } from "../data/write-whole.ts"
import { vaultLimits } from "../limits.ts"

export interface VaultKey {
  /** says which key it is, and nothing of it */
  readonly id: string
  readonly bytes: Buffer
}

type FoundKey =
  | { readonly ok: true; readonly key: VaultKey }
  | { readonly ok: false; readonly message: string; readonly fix: string }

const LEAST = 32

const derive = (secret: Buffer, what: string, length: number): Buffer =>
  Buffer.from(hkdfSync("sha256", secret, "", `vault of caisson, ${what}`, length))

const read = (file: string): Buffer | string => {
  let fd: number
  try {
    fd = openSync(file, "r")
  } catch (error) {
    return `${file} cannot be read (${(error as NodeJS.ErrnoException).code ?? "error"})`
  }
  try {
    const { mode, uid, size } = fstatSync(fd)
    const me = process.getuid?.() ?? uid
    if (!fstatSync(fd).isFile()) return `${file} is no plain file`
    if (uid !== me && uid !== 0) return `${file} belongs to another user`
    if ((mode & 0o077) !== 0 && !(uid === 0 && (mode & 0o037) === 0)) return `${file} is open to others`
    if (size < LEAST || size > vaultLimits.keyBytes.value)
      return `${file} has ${size} bytes; a key has ${LEAST} to ${vaultLimits.keyBytes.value}`
    const bytes = Buffer.alloc(size)
    readSync(fd, bytes, 0, size, 0)
    return bytes
  } finally {
    closeSync(fd)
  }
}

export const keyFrom = (file: string): FoundKey => {
  const secret = read(file)
  if (typeof secret === "string")
    return {
      ok: false,
      message: `the vault's key cannot be used: ${secret}`,
      fix: `put ${LEAST} or more random bytes there, readable by this user alone (chmod 600)`,
    }
  return { ok: true, key: { id: derive(secret, "key id", 8).toString("hex"), bytes: derive(secret, "key", 32) } }
}

type Environment = Readonly<Record<string, string | undefined>>

/** Where the operator keeps it; undefined: in the data folder. */
const external = (env: Environment): string | undefined => {
  const named = env["CAISSON_KEY_FILE"]
  if (named !== undefined && named !== "") return named
  const credentials = env["CREDENTIALS_DIRECTORY"]
  if (credentials === undefined || credentials === "") return undefined
  const file = join(credentials, "caisson-key")
  return statSync(file, { throwIfNoEntry: false }) === undefined ? undefined : file
}

const isThere = (file: string): boolean => statSync(file, { throwIfNoEntry: false }) !== undefined

/** Whoever comes first does it. */
const placeNext = (data: string): void => {
  try {
    renameSync(nextVaultKeyFile(data), vaultKeyFile(data))
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error
  }
}

/** The key of a vault that is there, by its id. */
export const keyOfVault = (data: string, id: string, env: Environment = process.env): FoundKey => {
  const file = external(env) ?? vaultKeyFile(data)
  const found = keyFrom(file)
  if (found.ok && found.key.id === id) return found
  // A rotation that broke off after the vault was written: the next key is the key.
  const next = external(env) === undefined && isThere(nextVaultKeyFile(data)) ? keyFrom(nextVaultKeyFile(data)) : found
  if (next.ok && next.key.id === id) {
    placeNext(data)
    return next
  }
  if (!found.ok) return { ...found, fix: `${found.fix}; the vault was made under the key ${id}` }
  return {
    ok: false,
    message: `the vault was made under the key ${id}, and ${file} holds ${found.key.id}`,
    fix: "set CAISSON_KEY_FILE to the file with the vault's own key, or bring that back from your backup",
  }
}

const newKey = (): string => `${randomBytes(LEAST).toString("base64")}\n`

/** The key for a vault that is not there yet. */
export const firstKey = (data: string, env: Environment = process.env): FoundKey => {
  const named = external(env)
  if (named !== undefined) return keyFrom(named)
  if (!isThere(vaultKeyFile(data))) writeWhole(vaultKeyFile(data), newKey(), 0o600)
  return keyFrom(vaultKeyFile(data))
}

/** A key to rotate to, and what puts it in place once the vault is under it. The operator's own is only the operator's to replace. */
export const nextKey = (data: string, env: Environment = process.env): FoundKey & { readonly place?: () => void } => {
  const named = external(env)
  if (named !== undefined) return keyFrom(named)
  writeWhole(nextVaultKeyFile(data), newKey(), 0o600)
  return { ...keyFrom(nextVaultKeyFile(data)), place: () => placeNext(data) }
}
