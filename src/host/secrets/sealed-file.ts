/**
 * The vault's file: all secrets in one AES-256-GCM text, under a key of its own that is wrapped under the vault's key.
 *
 * Guarantees: names, scopes and values are encrypted together, so that nothing of them can be read, swapped or changed on
 * its own; a file that is not exactly what was written is refused, and what is refused is never written over. Nonces are
 * random, and a data key is new with every writing. Pure: bytes in, bytes out.
 */
import { createCipheriv, createDecipheriv, randomBytes } from "node:crypto"
import type { SecretName } from "./vault.ts"
import type { VaultKey } from "./vault-key.ts"

export interface Entry extends SecretName {
  readonly set: string
  readonly value: string
}

export interface Sealed {
  readonly nonce: string
  readonly text: string
  readonly tag: string
}

interface SealedFile {
  readonly format: "caisson-vault/1"
  /** id of the key that `dataKey` is wrapped under */
  readonly key: string
  readonly dataKey: Sealed
  readonly secrets: Sealed
}

const ALGORITHM = "aes-256-gcm"
const FORMAT = "caisson-vault/1"

/** `bound`: what it counts for; under another word it cannot be opened. */
export const encrypt = (key: Uint8Array, plain: Uint8Array, bound: string): Sealed => {
  const nonce = randomBytes(12)
  const cipher = createCipheriv(ALGORITHM, key, nonce)
  cipher.setAAD(Buffer.from(bound))
  const text = Buffer.concat([cipher.update(plain), cipher.final()])
  return { nonce: nonce.toString("base64"), text: text.toString("base64"), tag: cipher.getAuthTag().toString("base64") }
}

/** Throws where it is not what was encrypted. */
export const decrypt = (key: Uint8Array, { nonce, text, tag }: Sealed, bound: string): Buffer => {
  const decipher = createDecipheriv(ALGORITHM, key, Buffer.from(nonce, "base64"), { authTagLength: 16 })
  decipher.setAAD(Buffer.from(bound))
  decipher.setAuthTag(Buffer.from(tag, "base64"))
  return Buffer.concat([decipher.update(Buffer.from(text, "base64")), decipher.final()])
}

const boundTo = (what: string, key: string): string => `${FORMAT} ${what} ${key}`

export const sealFile = (entries: readonly Entry[], key: VaultKey): string => {
  const dataKey = randomBytes(32)
  const file: SealedFile = {
    format: FORMAT,
    key: key.id,
    dataKey: encrypt(key.bytes, dataKey, boundTo("data key", key.id)),
    secrets: encrypt(dataKey, Buffer.from(JSON.stringify(entries)), boundTo("secrets", key.id)),
  }
  return `${JSON.stringify(file)}\n`
}

export const isSealed = (value: unknown): value is Sealed =>
  typeof value === "object" &&
  value !== null &&
  ["nonce", "text", "tag"].every((name) => typeof (value as Record<string, unknown>)[name] === "string")

/** Which key a file is under; undefined where it is no vault. */
export const readSealed = (text: string): SealedFile | undefined => {
  try {
    const file = JSON.parse(text) as Partial<SealedFile>
    const fits = file.format === FORMAT && typeof file.key === "string" && /^[0-9a-f]{16}$/.test(file.key)
    return fits && isSealed(file.dataKey) && isSealed(file.secrets) ? (file as SealedFile) : undefined
  } catch {
    return undefined
  }
}

/** Undefined where the file was changed since it was written. */
export const openSealed = (file: SealedFile, key: VaultKey): readonly Entry[] | undefined => {
  try {
    const dataKey = decrypt(key.bytes, file.dataKey, boundTo("data key", key.id))
    return JSON.parse(decrypt(dataKey, file.secrets, boundTo("secrets", key.id)).toString("utf8")) as readonly Entry[]
  } catch {
    return undefined
  }
}
