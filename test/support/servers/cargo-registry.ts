/** A sparse index of crates with their archives, made for a test; every request is recorded. */
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { gzipSync } from "node:zlib"
import { tarOf } from "../archives.ts"
import { sha256 } from "./download-server.ts"

export interface Crate {
  readonly name: string
  readonly version: string
  /** name → requirement */
  readonly needs?: Readonly<Record<string, string>>
  /** path → text, beside Cargo.toml */
  readonly files: Readonly<Record<string, string>>
  /** in the index instead of the archive's own */
  readonly checksum?: string
}

const indexPath = (name: string): string =>
  name.length <= 2
    ? `/${name.length}/${name}`
    : name.length === 3
      ? `/3/${name[0]}/${name}`
      : `/${name.slice(0, 2)}/${name.slice(2, 4)}/${name}`

export interface CargoRegistry extends AsyncDisposable {
  /** an entry of `egress.services`: it is `crates.test` */
  readonly service: string
  /** an entry of `install` */
  readonly setting: string
  readonly asked: readonly string[]
}

export const startCargoRegistry = async (crates: readonly Crate[]): Promise<CargoRegistry> => {
  const files = new Map<string, Buffer>()
  const asked: string[] = []
  const server = createServer((request, response) => {
    const path = request.url ?? "/"
    asked.push(path)
    const body = files.get(path)
    response.writeHead(body === undefined ? 404 : 200).end(body ?? "")
  })
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  const { port } = server.address() as AddressInfo
  const origin = `http://crates.test:${port}`
  files.set("/config.json", Buffer.from(JSON.stringify({ dl: `${origin}/dl/{crate}-{version}.crate` })))
  for (const { name, version, needs = {}, files: own, checksum } of crates) {
    const dependencies = Object.entries(needs).map(([each, range]) => `${each} = "${range}"\n`)
    const manifest = `[package]\nname = "${name}"\nversion = "${version}"\nedition = "2021"\n[dependencies]\n${dependencies.join("")}`
    const all = Object.entries({ "Cargo.toml": manifest, ...own })
    const archive = gzipSync(
      tarOf(all.map(([path, content]) => ({ name: `${name}-${version}/${path}`, content, mode: 0o644 }))),
    )
    files.set(`/dl/${name}-${version}.crate`, archive)
    const deps = Object.entries(needs).map(([each, req]) => ({
      name: each,
      req,
      features: [],
      optional: false,
      default_features: true,
      target: null,
      kind: "normal",
    }))
    const row = { name, vers: version, deps, cksum: checksum ?? sha256(archive), features: {}, yanked: false }
    const before = files.get(indexPath(name))?.toString() ?? ""
    files.set(indexPath(name), Buffer.from(`${before}${JSON.stringify(row)}\n`))
  }
  return {
    service: `crates.test: "127.0.0.1:${port}"`,
    setting: `cargo_registry: "${origin}/"`,
    asked,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise<void>((resolve) => server.close(() => resolve()))
    },
  }
}
