import { chmodSync, existsSync, mkdirSync, mkdtempSync, readdirSync, realpathSync, writeFileSync } from "node:fs"
import { homedir, tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, describe, expect } from "vitest"
import { zipWith } from "../support/archives.ts"
import { acquireEngine } from "../support/docker-engine.ts"
import { describeNeeding, testNeeding } from "../support/needing.ts"
import { removeFolder } from "../support/remove-folder.ts"
import { startCargoRegistry } from "../support/servers/cargo-registry.ts"
import { programAt } from "../support/servers/packages.ts"
import { lastReceipt, leftIn, openMethodsWorld } from "./methods-world.ts"

const engine = await acquireEngine()
afterAll(async () => {
  if (engine.ok) await engine[Symbol.asyncDispose]()
})
const docker = engine.ok ? `docker: { engine: "unix://${engine.socket}" }\n` : ""

/** A cargo of the system's, or one of rustup's toolchains (its launcher in ~/.cargo is not one). */
const ownCargo = ((): string | undefined => {
  const toolchains = join(homedir(), ".rustup/toolchains")
  if (!existsSync(toolchains)) return undefined
  const names = readdirSync(toolchains).sort().reverse()
  return names.map((name) => join(toolchains, name, "bin/cargo")).find((file) => existsSync(file))
})()
const cargo = programAt("cargo") === undefined ? ownCargo : undefined
const noCargo =
  programAt("cargo") === undefined && ownCargo === undefined
    ? "there is no cargo: `apt-get install cargo-web` (460 MB), or a toolchain of rustup's"
    : undefined
const noGo = programAt("go") === undefined ? "there is no go: `apt-get install golang-go` (464 MB)" : undefined
const interpreters = cargo === undefined ? "" : `interpreters: { cargo: "${cargo}" }`

const main = `fn main() {
    let words: Vec<String> = std::env::args().collect();
    if words[1] == "--version" { println!("1.2.3") } else { println!("{} {}", greeting::word(), words[2]) }
}
`
/** What a crate's own script does happens in the sandbox: it cannot leave it, and reaches nothing but the registry. */
const builder = `fn main() {
    assert!(std::fs::read_dir("/root").is_err());
    assert!(std::env::vars().all(|(name, _)| !name.contains("SECRET")));
    assert!(std::net::TcpStream::connect("127.0.0.1:22").is_err());
}
`
const crates = [
  { name: "greeting", version: "1.0.0", files: { "src/lib.rs": 'pub fn word() -> &\'static str { "hello" }\n' } },
  { name: "crated", version: "1.2.3", needs: { greeting: "^1" }, files: { "src/main.rs": main, "build.rs": builder } },
  { name: "crated", version: "2.0.0", files: { "src/main.rs": "fn main() {}" } },
]

const goMain = `package main

import (
	"fmt"
	"os"

	"mods.test/word"
)

func main() {
	if os.Args[1] == "--version" {
		fmt.Println("1.2.3")
	} else {
		fmt.Println(word.Word, os.Args[2])
	}
}
`
/** A folder as GOPROXY=file:// wants it. */
const publishModule = (
  folder: string,
  path: string,
  version: string,
  files: Readonly<Record<string, string>>,
): void => {
  const at = join(folder, path, "@v")
  mkdirSync(at, { recursive: true })
  writeFileSync(join(at, "list"), `${version}\n`)
  writeFileSync(join(at, `${version}.info`), JSON.stringify({ Version: version, Time: "2024-01-01T00:00:00Z" }))
  writeFileSync(join(at, `${version}.mod`), files["go.mod"] ?? "")
  const members = Object.entries(files).map(([name, content]) => ({
    name: `${path}@${version}/${name}`,
    content,
    mode: 0o100644,
  }))
  writeFileSync(join(at, `${version}.zip`), zipWith(members))
}
const modules = realpathSync(mkdtempSync(join(tmpdir(), "caisson-goproxy-")))
chmodSync(modules, 0o755)
afterAll(() => removeFolder(modules))
publishModule(modules, "mods.test/word", "v1.0.0", {
  "go.mod": "module mods.test/word\n",
  "w.go": 'package word\n\nvar Word = "hello"\n',
})
publishModule(modules, "mods.test/gone", "v1.2.3", {
  "go.mod": "module mods.test/gone\n\nrequire mods.test/word v1.0.0\n",
  "cmd/gone/main.go": goMain,
})

const suite = (backend: "namespace" | "docker"): void => {
  testNeeding("cargo builds a program from a local registry, and it is called", noCargo, async () => {
    await using registry = await startCargoRegistry(crates)
    await using made = await openMethodsWorld({
      backend,
      services: [registry.service],
      install: registry.setting,
      config: `${docker}${interpreters}`,
      drivers: () => [{ id: "crated", install: '[{ method: cargo, package: "crated@^1" }]' }],
    })
    const { world } = made
    const report = await world.host.install("crated")
    expect(report, JSON.stringify(report)).toMatchObject({
      ok: true,
      version: "1.2.3",
      layers: [{ source: "cargo", packages: [{ name: "crated", version: "1.2.3" }] }],
    })
    expect(await world.call("fixture.crated", { name: "Ada" })).toMatchObject({ ok: true, value: "hello Ada\n" })
    expect(lastReceipt(world.data)).toContain(`"layer":"${report.ok ? report.layers[0]?.digest : ""}"`)
  })
  testNeeding("go builds a program from a folder of modules, without any network, and it is called", noGo, async () => {
    await using made = await openMethodsWorld({
      backend,
      install: `go_proxy: "file://${modules}"`,
      config: docker,
      drivers: () => [{ id: "gone", install: '[{ method: go, package: "mods.test/gone/cmd/gone@v1.2.3" }]' }],
    })
    const { world } = made
    const report = await world.host.install("gone")
    expect(report, JSON.stringify(report)).toMatchObject({ ok: true, version: "1.2.3", layers: [{ source: "go" }] })
    expect(await world.call("fixture.gone", { name: "Ada" })).toMatchObject({ ok: true, value: "hello Ada\n" })
    expect(lastReceipt(world.data)).toContain(`"layer":"${report.ok ? report.layers[0]?.digest : ""}"`)
  })
}

describe("with the namespace backend", () => suite("namespace"))
describeNeeding("with the docker backend", engine.ok ? undefined : engine.reason, () => suite("docker"))

testNeeding(
  "a crate that is not what its index says ends the installation, other methods or not",
  noCargo,
  async () => {
    await using registry = await startCargoRegistry([
      {
        name: "crated",
        version: "1.2.3",
        files: { "src/main.rs": main },
        checksum: "60303ae22b998861bce3b28f33eec1be758a213c86c93c076dbe9f558c11c752",
      },
    ])
    await using made = await openMethodsWorld({
      services: [registry.service],
      install: registry.setting,
      config: interpreters,
      drivers: () => [
        { id: "crated", install: "[{ method: cargo, package: crated }, { method: npm, package: left-pad }]" },
      ],
    })
    expect(await made.world.host.install("crated")).toMatchObject({
      ok: false,
      error: {
        code: "install_failed",
        message: expect.stringContaining("checksum") as string,
        details: { reason: "hash_mismatch" },
      },
    })
    expect(leftIn(made.world.data)).toEqual({ builds: [], layers: [] })
  },
)
