/**
 * The Ed25519 key that signs the audit log's head, made on first use.
 *
 * Guarantees: the private key lies in `<data>/keys` with mode 0600 and never leaves this module; its public half is
 * published in `<data>/audit/.well-known/governance-keys.json`, so that the log can be verified from files alone.
 * Assumes: the caller holds the log's lock when `openSigner` may create the key.
 */
import {
  createHash,
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  sign,
  verify,
  type KeyObject,
} from "node:crypto"
import { readFileSync } from "node:fs"
import { auditKeyFile, publishedKeysFile } from "../../data-folder/paths.ts"
import { writeWhole } from "../data/write-whole.ts"

export interface PublishedKey {
  readonly id: string
  readonly alg: "Ed25519"
  /** raw 32 bytes, base64url */
  readonly publicKey: string
  readonly createdAt: string
}

export interface Signer {
  readonly keyId: string
  sign(bytes: Uint8Array): string
}

const rawPublic = (key: KeyObject): string =>
  ((key.type === "public" ? key : createPublicKey(key)).export({ format: "jwk" }) as { x: string }).x
const idOf = (publicKey: string): string =>
  `ed25519-${createHash("sha256").update(publicKey).digest("hex").slice(0, 16)}`

const isMissing = (error: unknown): boolean => (error as NodeJS.ErrnoException).code === "ENOENT"

const publishedIn = (text: string): readonly PublishedKey[] => {
  const parsed = JSON.parse(text) as { keys?: unknown }
  return Array.isArray(parsed.keys)
    ? (parsed.keys as PublishedKey[]).filter(
        (key) => key.alg === "Ed25519" && typeof key.publicKey === "string" && typeof key.id === "string",
      )
    : []
}

export const readPublishedKeys = (data: string): readonly PublishedKey[] => {
  try {
    return publishedIn(readFileSync(publishedKeysFile(data), "utf8"))
  } catch {
    return []
  }
}

const publicHalf = (key: KeyObject): PublishedKey => {
  const publicKey = rawPublic(key)
  return { id: idOf(publicKey), alg: "Ed25519", publicKey, createdAt: "" }
}

/** The key on this machine, by its public half; undefined where only copies of the log are at hand. */
export const localKey = (data: string): PublishedKey | undefined => {
  try {
    return publicHalf(createPrivateKey(readFileSync(auditKeyFile(data))))
  } catch {
    return undefined
  }
}

/** Keys that a verifier brings along: a copy of the published list, or one public key as PEM. */
export const keysFromFile = (file: string): readonly PublishedKey[] => {
  const text = readFileSync(file, "utf8")
  if (text.includes("-----BEGIN")) {
    const key = createPublicKey(text)
    if (key.asymmetricKeyType !== "ed25519") throw new Error(`${file} holds no Ed25519 key`)
    return [publicHalf(key)]
  }
  const keys = publishedIn(text)
  if (keys.length === 0) throw new Error(`${file} holds no key: give a PEM file or a copy of governance-keys.json`)
  return keys
}

const loadOrMake = (data: string): KeyObject => {
  const file = auditKeyFile(data)
  try {
    return createPrivateKey(readFileSync(file))
  } catch (error) {
    if (!isMissing(error)) throw error
  }
  const { privateKey } = generateKeyPairSync("ed25519")
  writeWhole(file, privateKey.export({ type: "pkcs8", format: "pem" }) as string, 0o600)
  return privateKey
}

export const openSigner = (data: string): Signer => {
  const key = loadOrMake(data)
  const publicKey = rawPublic(key)
  const keyId = idOf(publicKey)
  const published = readPublishedKeys(data)
  if (!published.some((entry) => entry.id === keyId)) {
    const entry: PublishedKey = { id: keyId, alg: "Ed25519", publicKey, createdAt: new Date().toISOString() }
    writeWhole(publishedKeysFile(data), `${JSON.stringify({ keys: [...published, entry] }, null, 2)}\n`, 0o600)
  }
  return { keyId, sign: (bytes) => sign(null, bytes, key).toString("base64url") }
}

export const verifySignature = (key: PublishedKey, bytes: Uint8Array, signature: string): boolean => {
  try {
    const object = createPublicKey({ key: { kty: "OKP", crv: "Ed25519", x: key.publicKey }, format: "jwk" })
    return idOf(key.publicKey) === key.id && verify(null, bytes, object, Buffer.from(signature, "base64url"))
  } catch {
    return false
  }
}
