import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, beforeAll, expect, it } from "vitest"
import { readConfig } from "../../../src/host/config/read.ts"
import { mirrorsOf, packagesFor } from "../../../src/host/assemble/docker.ts"
import type { RegisteredDriver } from "../../../src/host/registry/types.ts"

const apt = mkdtempSync(join(tmpdir(), "caisson-apt-"))
beforeAll(() => {
  mkdirSync(join(apt, "sources.list.d"))
  writeFileSync(
    join(apt, "sources.list"),
    "# deb http://commented.test/debian stable main\ndeb [arch=amd64] http://Deb.Debian.org/debian bookworm main\n",
  )
  writeFileSync(
    join(apt, "sources.list.d", "own.sources"),
    "Types: deb\nURIs: https://mirror.test:8443/debian http://deb.debian.org/debian-security\nSuites: x\n",
  )
  writeFileSync(join(apt, "sources.list.d", "off.list.disabled"), "deb http://disabled.test/ ./\n")
})
afterAll(() => rmSync(apt, { recursive: true, force: true }))

it("a build may reach the hosts of the machine's apt sources, at their ports, and none that is commented out", () => {
  expect(mirrorsOf(apt).map(({ text }) => text)).toEqual(["deb.debian.org:80", "mirror.test:8443"])
  expect(mirrorsOf(join(apt, "missing"))).toEqual([])
})

it("a layer has the apt packages of the drivers whose programs the call may run", () => {
  const driver = (bin: string, ...install: readonly [method: string, name: string, usable?: boolean][]) =>
    ({
      contract: {
        body: { kind: "cli", cli: { bin } },
        install: install.map(([method, name, usable = true]) => ({ method, usable, package: name })),
      },
    }) as unknown as RegisteredDriver
  const drivers = [
    driver("jq", ["brew", "jq-brew"], ["apt", "jq"]),
    driver("git", ["apt", "git"]),
    driver("rg", ["apt", "ripgrep", false]),
    driver("curl", ["apt", "curl"]),
  ]
  const executables = {
    program: "/usr/bin/jq",
    children: true,
    spawn: { git: "/usr/bin/git", rg: "/usr/bin/rg" },
    bundles: {},
  }
  expect(packagesFor(drivers, executables)).toEqual(["git", "jq"])
})

it("the engine is named by a socket or an address, and the rest has defaults", () => {
  const read = (text: string) => readConfig(text, "/etc/caisson.yaml", "/etc")
  expect(read("docker: { engine: 'tcp://127.0.0.1:2375' }")).toMatchObject({
    ok: true,
    config: { docker: { engine: "tcp://127.0.0.1:2375", rootfs: "host", pool: 0 } },
  })
  for (const bad of ["engine: /run/docker.sock", "engine: 'ssh://host'", "rootfs: mine", "pool: -1", "image: x"])
    expect(read(`docker: { ${bad} }`), bad).toMatchObject({ ok: false })
})
