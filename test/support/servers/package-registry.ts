/**
 * A registry of packages made for a test: npm's protocol and a Python index (PEP 503), with real archives.
 *
 * Guarantees: archives are what the test says, hostile members included, with the checksums of what is served unless the
 * test names others; every request is recorded.
 */
import { createHash } from "node:crypto"
import { createServer, type IncomingMessage, type ServerResponse } from "node:http"
import type { AddressInfo } from "node:net"
import { crc32, gzipSync } from "node:zlib"
import { pack } from "tar-stream"

export type Member =
  | string
  | { readonly link: string }
  | { readonly hardlink: string }
  | { readonly bytes: Uint8Array; readonly mode?: number }

export interface NpmPackage {
  readonly name: string
  readonly version: string
  /** beside `package.json`: path → content; a path that begins with `/` or `../` is put as it is, others below `package/` */
  readonly files?: Readonly<Record<string, Member>>
  readonly manifest?: Readonly<Record<string, unknown>>
  /** instead of the archive's own checksum */
  readonly integrity?: string
  /** where the archive is said to be, instead of here */
  readonly tarball?: string
}

const tarballOf = async ({ name, version, files = {}, manifest = {} }: NpmPackage): Promise<Buffer> => {
  const archive = pack()
  const all: Record<string, Member> = { "package.json": JSON.stringify({ name, version, ...manifest }), ...files }
  for (const [path, member] of Object.entries(all)) {
    const at = path.startsWith("/") || path.startsWith("../") ? path : `package/${path}`
    if (typeof member === "string") archive.entry({ name: at, mode: 0o755 }, member)
    else if ("bytes" in member) archive.entry({ name: at, mode: member.mode ?? 0o644 }, Buffer.from(member.bytes))
    else if ("link" in member) archive.entry({ name: at, type: "symlink", linkname: member.link })
    else archive.entry({ name: at, type: "link", linkname: member.hardlink })
  }
  archive.finalize()
  const parts: Buffer[] = []
  for await (const part of archive) parts.push(Buffer.from(part as Uint8Array))
  return gzipSync(Buffer.concat(parts))
}

export interface Wheel {
  readonly name: string
  readonly version: string
  readonly files?: Readonly<Record<string, string>>
  /** lines of METADATA */
  readonly requires?: readonly string[]
  /** `name = module:function` */
  readonly scripts?: readonly string[]
  /** serve this instead of a wheel: a source archive */
  readonly sdist?: boolean
}

const zipOf = (files: Readonly<Record<string, string>>): Buffer => {
  const parts: Buffer[] = []
  const directory: Buffer[] = []
  let offset = 0
  for (const [path, text] of Object.entries(files)) {
    const [name, body] = [Buffer.from(path), Buffer.from(text)]
    const fields = Buffer.alloc(26)
    fields.writeUInt16LE(20, 0)
    fields.writeUInt16LE(0x21, 8)
    fields.writeUInt32LE(crc32(body), 10)
    fields.writeUInt32LE(body.length, 14)
    fields.writeUInt32LE(body.length, 18)
    fields.writeUInt16LE(name.length, 22)
    const local = Buffer.concat([Buffer.from("PK\x03\x04"), fields, name, body])
    const tail = Buffer.alloc(14)
    tail.writeUInt32LE(0o100644 * 0x10000, 6)
    tail.writeUInt32LE(offset, 10)
    directory.push(Buffer.concat([Buffer.from("PK\x01\x02\x14\x03"), fields, tail, name]))
    parts.push(local)
    offset += local.length
  }
  const listed = Buffer.concat(directory)
  const end = Buffer.alloc(18)
  end.writeUInt16LE(parts.length, 4)
  end.writeUInt16LE(parts.length, 6)
  end.writeUInt32LE(listed.length, 8)
  end.writeUInt32LE(offset, 12)
  return Buffer.concat([...parts, listed, Buffer.from("PK\x05\x06"), end])
}

const wheelOf = ({ name, version, files = {}, requires = [], scripts = [] }: Wheel): Buffer => {
  const info = `${name}-${version}.dist-info`
  const all: Record<string, string> = {
    ...files,
    [`${info}/METADATA`]: [
      "Metadata-Version: 2.1",
      `Name: ${name}`,
      `Version: ${version}`,
      ...requires.map((each) => `Requires-Dist: ${each}`),
      "",
    ].join("\n"),
    [`${info}/WHEEL`]: "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    ...(scripts.length === 0 ? {} : { [`${info}/entry_points.txt`]: `[console_scripts]\n${scripts.join("\n")}\n` }),
  }
  const record = [...Object.keys(all).map((path) => `${path},,`), `${info}/RECORD,,`, ""].join("\n")
  return zipOf({ ...all, [`${info}/RECORD`]: record })
}

export interface PackageRegistry extends AsyncDisposable {
  readonly port: number
  /** of each request, in order */
  readonly asked: readonly string[]
  /** lines for caisson.yaml: this registry is `registry.test` */
  readonly config: string
  publish(...packages: readonly NpmPackage[]): Promise<void>
  publishWheels(...wheels: readonly Wheel[]): void
  /** answer a path in another way, until it is called off */
  answer(path: string, how: ((request: IncomingMessage, response: ServerResponse) => void) | undefined): void
}

export const startPackageRegistry = async (): Promise<PackageRegistry> => {
  const files = new Map<string, Buffer | string>()
  const odd = new Map<string, (request: IncomingMessage, response: ServerResponse) => void>()
  const asked: string[] = []
  const server = createServer((request, response) => {
    const path = decodeURIComponent((request.url ?? "/").split("?", 1)[0] ?? "/")
    asked.push(path)
    const how = odd.get(path)
    if (how !== undefined) return how(request, response)
    const body = files.get(path)
    if (body === undefined) response.statusCode = 404
    const type = path.startsWith("/simple/") ? "text/html" : "application/json"
    response.setHeader("content-type", typeof body === "string" ? type : "application/octet-stream")
    response.end(body ?? "{}")
  })
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  const { port } = server.address() as AddressInfo
  const origin = `http://registry.test:${port}`
  const versions = new Map<string, Record<string, unknown>>()
  const links = new Map<string, string[]>()
  return {
    port,
    asked,
    config: [
      `egress: { services: { registry.test: "127.0.0.1:${port}" } }`,
      `install: { npm_registry: "${origin}/", pip_index: "${origin}/simple/" }`,
      "",
    ].join("\n"),
    async publish(...packages) {
      for (const each of packages) {
        const { name, version, manifest = {}, integrity, tarball } = each
        const bytes = await tarballOf(each)
        const at = `/${name}/-/${name.split("/").at(-1)}-${version}.tgz`
        files.set(at, bytes)
        const known = { ...versions.get(name) }
        known[version] = {
          name,
          version,
          ...manifest,
          dist: {
            tarball: tarball ?? `${origin}${at}`,
            integrity: integrity ?? `sha512-${createHash("sha512").update(bytes).digest("base64")}`,
          },
        }
        versions.set(name, known)
        files.set(`/${name}`, JSON.stringify({ name, "dist-tags": { latest: version }, versions: known }))
      }
    },
    publishWheels(...wheels) {
      for (const each of wheels) {
        const bytes = wheelOf(each)
        const file =
          each.sdist === true ? `${each.name}-${each.version}.tar.gz` : `${each.name}-${each.version}-py3-none-any.whl`
        files.set(`/files/${file}`, bytes)
        const sha256 = createHash("sha256").update(bytes).digest("hex")
        const all = [...(links.get(each.name) ?? []), `<a href="${origin}/files/${file}#sha256=${sha256}">${file}</a>`]
        links.set(each.name, all)
        files.set(
          `/simple/${each.name.replaceAll("_", "-")}/`,
          `<!DOCTYPE html><html><body>${all.join("\n")}</body></html>`,
        )
      }
    },
    answer(path, how) {
      if (how === undefined) odd.delete(path)
      else odd.set(path, how)
    },
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise<void>((resolve) => server.close(() => resolve()))
    },
  }
}
