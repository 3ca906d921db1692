/**
 * Where a layer is seen inside, where its programs and packages lie, and what they need to find one another.
 *
 * Guarantees: a program or package that is handed out lies in the layer by its words; links are not followed here.
 */
import { existsSync, lstatSync } from "node:fs"
import { join } from "node:path"
import type { Remembered } from "./layers.ts"
import type { FrozenLayer, InstallSource, LayerPath, MethodSpec } from "./types.ts"

interface Layout {
  readonly inside: string
  readonly packages: string
  /** folders that programs lie in, in the order they are looked for */
  readonly programs: readonly string[]
}

export const layouts: Readonly<Record<InstallSource, Layout>> = {
  npm: { inside: "/opt/installed/npm", packages: "node_modules", programs: ["node_modules/.bin"] },
  pip: { inside: "/opt/installed/pip", packages: "site", programs: ["site/bin"] },
  cargo: { inside: "/opt/installed/cargo", packages: "", programs: ["bin"] },
  go: { inside: "/opt/installed/go", packages: "", programs: ["bin"] },
  apt: {
    inside: "/opt/installed/apt",
    packages: "",
    programs: ["usr/bin", "bin", "usr/sbin", "sbin", "usr/local/bin", "usr/games"],
  },
  download: { inside: "/opt/installed/download", packages: "", programs: [] },
  curl: {
    inside: "/opt/installed/curl",
    packages: "",
    programs: ["bin", ".local/bin", "usr/local/bin", "usr/bin", ""],
  },
  code: { inside: "/opt/driver", packages: "", programs: ["node_modules/.bin"] },
  local: { inside: "/opt/installed/local", packages: "", programs: ["node_modules/.bin"] },
}

const TRIPLETS: Readonly<Record<string, string>> = {
  x64: "x86_64-linux-gnu",
  arm64: "aarch64-linux-gnu",
  arm: "arm-linux-gnueabihf",
  riscv64: "riscv64-linux-gnu",
  s390x: "s390x-linux-gnu",
  ppc64: "powerpc64le-linux-gnu",
}
const TRIPLET = TRIPLETS[process.arch] ?? ""
/** Parts of a Debian system that lie elsewhere than their programs were built to look for them. */
const DEBIAN_PARTS: Readonly<Record<string, readonly string[]>> = {
  LD_LIBRARY_PATH: [`usr/lib/${TRIPLET}`, `lib/${TRIPLET}`, "usr/lib", "lib"],
  PYTHONPATH: ["usr/lib/python3/dist-packages"],
  PERL5LIB: ["usr/share/perl5", `usr/lib/${TRIPLET}/perl5`],
}

const envOf = (source: InstallSource, folder: string): Readonly<Record<string, string>> => {
  const { inside, packages } = layouts[source]
  if (source === "pip") return { PYTHONPATH: join(inside, packages) }
  if (source !== "apt") return {}
  const found = Object.entries(DEBIAN_PARTS).map(([name, places]) => [
    name,
    places
      .filter((place) => existsSync(join(folder, place)))
      .map((place) => join(inside, place))
      .join(":"),
  ])
  return Object.fromEntries(found.filter(([, value]) => value !== ""))
}

export const layerOf = (spec: MethodSpec, { digest, packages }: Remembered, folder: string): FrozenLayer => {
  const { source } = spec
  const layout = layouts[source]
  const at = (...names: readonly string[]): LayerPath | undefined => {
    if (names.some((name) => name.split("/").some((part) => part === "" || part === "." || part === "..")))
      return undefined
    const host = join(folder, ...names)
    const there = lstatSync(host, { throwIfNoEntry: false }) !== undefined
    return there ? { host, inside: join(layout.inside, ...names) } : undefined
  }
  const inPackages = layout.packages === "" ? [] : [layout.packages]
  const programIn = (name: string): LayerPath | undefined => {
    for (const place of layout.programs) {
      const found = at(...(place === "" ? [] : [place]), name)
      if (found !== undefined) return found
    }
    return undefined
  }
  return Object.freeze({
    digest: `sha256:${digest}`,
    source,
    folder,
    inside: layout.inside,
    bundles: Object.freeze({ [folder]: layout.inside }),
    env: Object.freeze(envOf(source, folder)),
    packages,
    // What a download's program is called there is the manifest's word, whatever the driver calls it.
    bin: (name: string) => (spec.source === "download" ? at(spec.program) : programIn(name)),
    entry: (name: string) => (source === "npm" ? at(...inPackages, name) : at(...inPackages)),
  })
}
