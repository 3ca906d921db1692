/**
 * What makes the programs in a sandbox trust its call authority: variables that name a bundle, and the bundle.
 *
 * Guarantees: pure; the bundle holds only certificate blocks, the system's first, the authority's last, so that
 * hosts which are not intercepted verify as before. Nearly all of these variables replace a program's own roots,
 * so the path must hold the whole bundle, never the authority alone.
 * Assumes: the sandbox can read `bundlePath`. Programs that read a fixed file and no variable are served by putting
 * the bundle over /etc/ssl/certs/ca-certificates.crt and its like.
 * Does not: serve stores in other formats (Java's and NSS's own stores).
 */

const variables = [
  "SSL_CERT_FILE", // OpenSSL, Python ssl, Ruby, Go, rustls-native-certs
  "NODE_EXTRA_CA_CERTS",
  "REQUESTS_CA_BUNDLE", // Python requests
  "CURL_CA_BUNDLE",
  "GIT_SSL_CAINFO",
  "PIP_CERT",
  "AWS_CA_BUNDLE",
  "npm_config_cafile",
  "YARN_HTTPS_CA_FILE_PATH",
  "CARGO_HTTP_CAINFO",
  "DENO_CERT",
  "NIX_SSL_CERT_FILE",
  "BUNDLE_SSL_CA_CERT",
  "COMPOSER_CAFILE",
  "PERL_LWP_SSL_CA_FILE",
  "GRPC_DEFAULT_SSL_ROOTS_FILE_PATH",
  "CLOUDSDK_CORE_CUSTOM_CA_CERTS_FILE",
  "HEX_CACERTS_PATH",
] as const

type TrustVariable = (typeof variables)[number]

export function trustEnvironment(bundlePath: string): Readonly<Record<TrustVariable, string>> {
  const entries = variables.map((name) => [name, bundlePath] as const)
  return Object.freeze(Object.fromEntries(entries)) as Readonly<Record<TrustVariable, string>>
}

const block = /-----BEGIN CERTIFICATE-----\r?\n[A-Za-z0-9+/=\r\n]+-----END CERTIFICATE-----/g

/** The system's certificates and the call authority's, in one PEM text without comments or blank lines. */
export function bundleWith(systemBundlePem: string, caPem: string): string {
  const own = caPem.match(block) ?? []
  if (own.length !== 1) throw new TypeError("the call authority is exactly one certificate")
  const blocks = [...(systemBundlePem.match(block) ?? []), ...own]
  return blocks.map((text) => `${text.replace(/(?:\r?\n)+/g, "\n")}\n`).join("")
}
