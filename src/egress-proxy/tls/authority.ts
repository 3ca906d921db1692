/**
 * The certificate authority of one call: made in memory, trusted by one sandbox, gone with the call.
 *
 * Guarantees: the CA key is never exported, written or logged; `dispose` drops it, after which no leaf can be made.
 * Certificates hold to RFC 5280 as OpenSSL's strict mode and Python 3.13 check it. Given `names`, the CA carries a
 * critical name constraint, so that even its holder could not speak for another host, and `leafFor` refuses others.
 * Leaves share one key, differ in serial number, and are cached up to a cap, oldest dropped first.
 * Assumes: names are canonical host names.
 * Does not: revoke, persist, or sign for addresses.
 */
import { createHash, generateKeyPairSync, randomBytes, sign, type KeyObject } from "node:crypto"
import { bits, integer, octets, oid, pem, sequence, set, tagged, time, utf8, wrapped, yes } from "./der.ts"

export interface Leaf {
  /** PEM of the leaf certificate */
  readonly cert: string
  /** PEM of the leaf's private key */
  readonly key: string
}

export interface CallAuthority extends Disposable {
  readonly caPem: string
  /** Throws for what is no host name, for a name outside `names`, and after `dispose`: all three are bugs. */
  leafFor(name: string): Leaf
  dispose(): void
}

/** What a proxy with secrets has and others have not. */
export interface Interceptor {
  readonly authority: CallAuthority
  /** trust anchors beside the public ones, for upstreams with a private CA */
  readonly upstreamCa?: readonly string[]
}

export interface CallAuthorityOptions {
  /** the only hosts this authority may ever speak for */
  readonly names?: readonly string[]
  /** and those below these */
  readonly under?: readonly string[]
  readonly now?: Date
  /** default one day */
  readonly lifetimeMs?: number
}

const hour = 3_600_000
const leafCap = 1024
const oids = {
  ecdsaSha256: oid("1.2.840.10045.4.3.2"),
  commonName: oid("2.5.4.3"),
  subjectKeyId: oid("2.5.29.14"),
  keyUsage: oid("2.5.29.15"),
  subjectAltName: oid("2.5.29.17"),
  basicConstraints: oid("2.5.29.19"),
  nameConstraints: oid("2.5.29.30"),
  authorityKeyId: oid("2.5.29.35"),
  extendedKeyUsage: oid("2.5.29.37"),
  serverAuth: oid("1.3.6.1.5.5.7.3.1"),
}
const signatureAlgorithm = sequence(oids.ecdsaSha256)
const hostName = /^(?=.{1,253}$)[a-z0-9_](?:[a-z0-9_-]{0,62})(?:\.[a-z0-9_-]{1,63})*$/

export function createCallAuthority(options: CallAuthorityOptions = {}): CallAuthority {
  const now = options.now ?? new Date()
  const names = options.names === undefined ? undefined : new Set(options.names.map(checkedName))
  const under = (options.under ?? []).map(checkedName)
  // A sandbox clock a little behind must still find the certificates valid.
  const notBefore = new Date(now.getTime() - hour)
  const notAfter = new Date(now.getTime() + (options.lifetimeMs ?? 24 * hour))
  const ca = generateKeyPairSync("ec", { namedCurve: "P-256" })
  let caKey: KeyObject | undefined = ca.privateKey
  const caId = keyId(ca.publicKey)
  const issuer = commonName(`Caisson call authority ${randomBytes(8).toString("hex")}`)

  const certificate = (subject: Buffer, publicKey: KeyObject, extensions: readonly Buffer[]): string => {
    if (caKey === undefined) throw new Error("the call authority is gone")
    const tbs = sequence(
      wrapped(0, integer(Buffer.from([2]))),
      integer(serialNumber()),
      signatureAlgorithm,
      issuer,
      sequence(time(notBefore), time(notAfter)),
      subject,
      publicKey.export({ type: "spki", format: "der" }),
      wrapped(3, sequence(...extensions)),
    )
    return pem("CERTIFICATE", sequence(tbs, signatureAlgorithm, bits(sign("sha256", tbs, caKey))))
  }

  const caExtensions = [
    extension(oids.basicConstraints, sequence(yes, integer(Buffer.from([0]))), "critical"),
    // keyCertSign and cRLSign
    extension(oids.keyUsage, bits(Buffer.from([0x06]), 1), "critical"),
    extension(oids.subjectKeyId, octets(caId)),
  ]
  if (names !== undefined && names.size + under.length > 0) {
    const permitted = [...new Set([...names, ...under])].map((name) => sequence(tagged(2, Buffer.from(name))))
    caExtensions.push(extension(oids.nameConstraints, sequence(wrapped(0, ...permitted)), "critical"))
  }
  const caPem = certificate(issuer, ca.publicKey, caExtensions)

  let leafKey: { readonly pem: string; readonly publicKey: KeyObject; readonly id: Buffer } | undefined
  const leaves = new Map<string, Leaf>()

  const leafFor = (name: string): Leaf => {
    if (caKey === undefined) throw new Error("the call authority is gone")
    const known = leaves.get(name)
    if (known !== undefined) return known
    checkedName(name)
    const isBelow = under.some((above) => name.endsWith(`.${above}`))
    if (names !== undefined && !names.has(name) && !isBelow)
      throw new Error("the call authority may not speak for this name")
    if (leafKey === undefined) {
      const pair = generateKeyPairSync("ec", { namedCurve: "P-256" })
      const text = pair.privateKey.export({ type: "pkcs8", format: "pem" }).toString()
      leafKey = { pem: text, publicKey: pair.publicKey, id: keyId(pair.publicKey) }
    }
    // A common name holds at most 64 characters; without one the subject is empty and the names must be critical.
    const named = name.length <= 64
    const cert = certificate(named ? commonName(name) : sequence(), leafKey.publicKey, [
      extension(oids.basicConstraints, sequence(), "critical"),
      // digitalSignature
      extension(oids.keyUsage, bits(Buffer.from([0x80]), 7), "critical"),
      extension(oids.extendedKeyUsage, sequence(oids.serverAuth)),
      extension(oids.subjectKeyId, octets(leafKey.id)),
      extension(oids.authorityKeyId, sequence(tagged(0, caId))),
      extension(oids.subjectAltName, sequence(tagged(2, Buffer.from(name))), named ? undefined : "critical"),
    ])
    const oldest = leaves.size >= leafCap ? leaves.keys().next().value : undefined
    if (oldest !== undefined) leaves.delete(oldest)
    const leaf = Object.freeze({ cert, key: leafKey.pem })
    leaves.set(name, leaf)
    return leaf
  }

  const dispose = (): void => {
    caKey = undefined
    leafKey = undefined
    leaves.clear()
  }

  return { caPem, leafFor, dispose, [Symbol.dispose]: dispose }
}

function checkedName(name: string): string {
  if (!hostName.test(name)) throw new TypeError("a certificate is made for a canonical host name only")
  return name
}

const commonName = (text: string): Buffer => sequence(set(sequence(oids.commonName, utf8(text))))

const extension = (id: Buffer, value: Buffer, critical?: "critical"): Buffer =>
  critical === undefined ? sequence(id, octets(value)) : sequence(id, yes, octets(value))

/** SHA-1 of the key bits, method 1 of RFC 5280: an identifier, not a protection. */
function keyId(publicKey: KeyObject): Buffer {
  const jwk = publicKey.export({ format: "jwk" })
  const point = [jwk.x, jwk.y].map((part) => Buffer.from(part as string, "base64url"))
  return createHash("sha1")
    .update(Buffer.concat([Buffer.from([4]), ...point]))
    .digest()
}

/** 127 random bits, positive and never zero */
function serialNumber(): Buffer {
  const serial = randomBytes(16)
  serial[0] = ((serial[0] as number) & 0x7f) | 0x40
  return serial
}
