import { chmodSync, mkdirSync, mkdtempSync, renameSync, rmSync, utimesSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import path from "node:path"
import { afterEach, beforeEach, describe, expect, it } from "vitest"
import { type AvailabilityOptions, createAvailability } from "../../../src/host/drivers/availability.ts"
import type { DriverAvailability } from "../../../src/host/drivers/kind.ts"
import { thisMachine } from "../../../src/host/drivers/program/machine.ts"
import type { ProbeRequest, ProbeResult, VersionStore } from "../../../src/host/drivers/program/version-check.ts"
import type { RegisteredDriver } from "../../../src/host/registry/types.ts"
import type { DriverContract, InstallMethod } from "../../../src/manifest/types.ts"
import { bodyOf, cliDriverOf, driverOf, registered } from "../resolver/contracts.ts"
import { noInstalls } from "../install/no-installs.ts"

let root = ""
let bin = ""
const put = (name: string, mode = 0o755): void => {
  const file = path.join(root, name)
  mkdirSync(path.dirname(file), { recursive: true })
  writeFileSync(file, "\x7fELF")
  chmodSync(file, mode)
}
beforeEach(() => {
  root = mkdtempSync(path.join(tmpdir(), "caisson-available-"))
  bin = path.join(root, "bin")
  put("bin/jq")
  put("bin/sh")
  put("bin/other")
  put("bundle/tool/own")
})
afterEach(() => rmSync(root, { recursive: true }))

const machine = { os: "linux", arch: "x64", memoryMb: 4096, freeDiskMb: 100 }
type Manager = "apt" | "brew" | "pip" | "npm"
const method = (name: Manager, packageName: string): InstallMethod => {
  const named = { usable: true, package: packageName, name: packageName } as const
  if (name === "npm") return { ...named, method: name, global: true }
  return name === "pip" ? { ...named, method: name, user: false } : { ...named, method: name }
}
const vendoredAt = (at: string): InstallMethod => ({ usable: true, method: "vendored", path: at })
const check = { cmd: "jq --version", parse: "jq-(\\S+)", range: ">=1.6 <2", timeoutMs: 500 }
const jq = (over: Partial<DriverContract> = {}): RegisteredDriver =>
  registered(
    cliDriverOf("jq", {
      versionCheck: check,
      install: [method("brew", "jq"), method("apt", "jq")],
      ...over,
    }),
  )
const withBin = (name: string, over: Partial<DriverContract> = {}): RegisteredDriver => {
  const { contract } = jq(over)
  const source = { ...contract.source, file: path.join(root, "bundle/DRIVER.md") }
  return registered({
    ...contract,
    source,
    body: bodyOf("cli", name),
  })
}

const answering = (answer: Partial<Extract<ProbeResult, { ran: true }>> | ProbeResult = {}) => {
  const asked: ProbeRequest[] = []
  const probe = (request: ProbeRequest): Promise<ProbeResult> => {
    asked.push(request)
    return Promise.resolve(
      answer.ran === false ? answer : { ran: true, exit: 0, stdout: "jq-1.7.1\n", stderr: "", ...answer },
    )
  }
  return { asked, probe }
}
const checker = (over: Partial<AvailabilityOptions> = {}) =>
  createAvailability({
    machine,
    installs: noInstalls,
    probe: answering().probe,
    runInModule: () => Promise.reject(new Error("not in these tests")),
    talk: () => Promise.reject(new Error("nothing here is talked with")),
    folders: [bin],
    ...over,
  })
const said = (found: DriverAvailability): string =>
  found.available ? `available ${found.version ?? "unversioned"}` : `${found.code}: ${found.reason} [${found.fix}]`

describe("availability", () => {
  // biome-ignore format: a table reads by rows
  it.each<[string, () => RegisteredDriver, Partial<AvailabilityOptions>, RegExp]>([
    ["a program in the right version is available", () => jq(), {}, /^available 1\.7\.1$/],
    ["a program without a check is available", () => registered(cliDriverOf("jq")), {}, /^available unversioned$/],
    ["a missing program is not, with the package to install", () => withBin("gone"), {}, /^tool_unavailable: `gone` is not in .* \[run `apt-get install jq`\]$/],
    ["another version is a mismatch, with both", () => jq(), { probe: answering({ stdout: "jq-1.5" }).probe }, /^version_mismatch: version 1\.5\.0 is installed, and the driver asks for >=1\.6 <2/],
    ["the version may stand in stderr", () => jq(), { probe: answering({ stdout: "", stderr: "jq-1.6" }).probe }, /^available 1\.6\.0$/],
    ["the version counts whatever the exit code", () => jq(), { probe: answering({ exit: 1 }).probe }, /^available 1\.7\.1$/],
    ["no version in the output is unavailable", () => jq(), { probe: answering({ stdout: "hello" }).probe }, /^tool_unavailable: its version check exited with 0: no version/],
    ["a check that did not end is unavailable", () => jq(), { probe: answering({ exit: null }).probe }, /did not finish within 500 ms/],
    ["a check that cannot be sealed is not run", () => jq(), { probe: answering({ ran: false, reason: "no user namespaces", fix: "enable them" }).probe }, /^tool_unavailable: .*could not be run: no user namespaces \[enable them\]$/],
    ["a refused driver has the registry's reason", () => ({ ...jq(), refusal: { code: "manifest_invalid", reason: "bad", fix: "mend" } }), {}, /^manifest_invalid: bad \[mend\]$/],
    ["an unusable driver has its reason", () => jq({ unusable: "no base_url" }), {}, /^tool_unavailable: no base_url/],
    ["a builtin that this host does not have is not available", () => registered(driverOf("x", { body: bodyOf("builtin") })), {}, /there is no builtin `image.create` in this host/],
    ["a service that its driver does not declare is not available", () => registered(driverOf("x")), {}, /does not declare the host of its `base_url`, api\.test:443 \[add/],
    ["another operating system", () => jq({ requires: { os: ["darwin"], arch: [] } }), {}, /runs on darwin, and this is linux/],
    ["another processor", () => jq({ requires: { os: ["linux"], arch: ["arm64"] } }), {}, /runs on arm64, and this is x64/],
    ["the right machine", () => jq({ requires: { os: ["linux"], arch: ["x64"], minMemoryMb: 4096, minDiskMb: 100 } }), {}, /^available/],
    ["too little memory", () => jq({ requires: { os: [], arch: [], minMemoryMb: 4097 } }), {}, /4097 MB of memory/],
    ["too little disk", () => jq({ requires: { os: [], arch: [], minDiskMb: 101 } }), {}, /101 MB of free disk/],
    ["unknown disk", () => jq({ requires: { os: [], arch: [], minDiskMb: 1 } }), { machine: { os: "linux", arch: "x64", memoryMb: 1 } }, /not known/],
  ])("says that %s", async (_, driver, over, expected) => {
    expect(said(await checker(over).of(driver()))).toMatch(expected)
  })

  // biome-ignore format: a table reads by rows
  it.each<[string, readonly InstallMethod[], string]>([
    ["apt before what stands first", [method("brew", "a"), method("apt", "b")], "run `apt-get install b`"],
    ["the first other method", [method("npm", "@x/y"), method("brew", "a")], "run `npm install --global @x/y`"],
    ["no unusable method", [{ usable: false, method: "apt", reason: "experimental" }, method("pip", "c")], "run `pip install c`"],
    ["no package name that a shell would act on", [method("apt", "b; rm -rf ~")], "install `gone` into /usr/local/bin or by your package manager"],
    ["no option in place of a package", [method("apt", "--allow-downgrades")], "install `gone` into /usr/local/bin or by your package manager"],
    ["nothing known", [], "install `gone` into /usr/local/bin or by your package manager"],
  ])("suggests %s", async (_, install, fix) => {
    const found = await checker().of(withBin("gone", { install }))
    expect(!found.available && found.fix).toBe(fix)
  })
})

describe("where the program comes from", () => {
  const vendored = vendoredAt("./tool/own")
  // biome-ignore format: a table reads by rows
  it.each<[string, string, readonly InstallMethod[], string]>([
    ["a relative bin is the driver's own", "tool/own", [], "bundle/tool/own"],
    ["vendored first is the driver's own", "jq", [vendored, method("apt", "jq")], "bundle/tool/own"],
    ["vendored later gives way to the system's", "jq", [method("apt", "jq"), vendored], "bin/jq"],
    ["vendored later stands in where the system has none", "gone", [method("apt", "x"), vendored], "bundle/tool/own"],
    ["vendored that is missing gives way to the system's", "jq", [vendoredAt("none")], "bin/jq"],
  ])("%s", async (_, name, install, expected) => {
    const found = await checker().of(withBin(name, { install, versionCheck: { ...check, cmd: `${name} --version` } }))
    expect(found.available && path.relative(root, found.program?.path ?? "")).toBe(expected)
  })
})

describe("the version check", () => {
  it("is handed over as words, never to a shell", async () => {
    const { asked, probe } = answering()
    await checker({ probe }).of(jq({ versionCheck: { ...check, cmd: 'jq "a b" $X' } }))
    expect(asked).toHaveLength(1)
    expect(asked[0]).toMatchObject({ argv: ["jq", "a b"], shell: false, timeoutMs: 500, spawn: {} })
    expect(asked[0]?.program.path).toBe(path.join(bin, "jq"))
  })

  it("takes variables from the sandbox's environment", async () => {
    const { asked, probe } = answering()
    await checker({ probe }).of(jq({ versionCheck: { ...check, cmd: "jq ~/x" } }))
    expect(asked[0]?.argv).toEqual(["jq", "/home/tool/x"])
  })

  it("flags a command that needs a shell and lists what it may start", async () => {
    const { asked, probe } = answering()
    await checker({ probe }).of(jq({ versionCheck: { ...check, cmd: "jq --version | head -1" } }))
    expect(asked[0]).toMatchObject({ argv: ["sh", "-c", "jq --version | head -1"], shell: true })
    expect([asked[0]?.program.path, Object.keys(asked[0]?.spawn ?? {})]).toEqual([path.join(bin, "sh"), ["jq"]])
  })

  it("may start another program, and is unavailable where that is missing", async () => {
    const { asked, probe } = answering()
    expect((await checker({ probe }).of(jq({ versionCheck: { ...check, cmd: "other jq" } }))).available).toBe(true)
    expect(asked[0]?.program.path).toBe(path.join(bin, "other"))
    expect(said(await checker({ probe }).of(jq({ versionCheck: { ...check, cmd: "nowhere jq" } })))).toMatch(
      /starts another program: `nowhere` is not in/,
    )
  })

  it("is unavailable when the command cannot be read", async () => {
    expect(said(await checker().of(jq({ versionCheck: { ...check, cmd: "jq 'x" } })))).toMatch(
      /cannot be read: a single quote/,
    )
  })
})

describe("what is remembered", () => {
  it("asks once for many questions at the same time", async () => {
    const { asked, probe } = answering()
    const available = checker({ probe })
    await Promise.all(Array.from({ length: 5 }, () => available.of(jq())))
    await available.of(jq())
    expect(asked).toHaveLength(1)
  })

  it("asks again when the program changed", async () => {
    const { asked, probe } = answering()
    const available = checker({ probe })
    await available.of(jq())
    utimesSync(path.join(bin, "jq"), 1, 1)
    await available.of(jq())
    writeFileSync(path.join(bin, "jq"), "\x7fELF larger")
    utimesSync(path.join(bin, "jq"), 1, 1)
    await available.of(jq())
    expect(asked).toHaveLength(3)
  })

  it("asks again when the driver changed", async () => {
    const { asked, probe } = answering()
    const available = checker({ probe })
    const driver = jq()
    await available.of(driver)
    await available.of({
      ...driver,
      contract: { ...driver.contract, source: { ...driver.contract.source, digest: "sha256:1" } },
    })
    expect(asked).toHaveLength(2)
  })

  it("notices at once that the program is gone", async () => {
    const available = checker()
    expect((await available.of(jq())).available).toBe(true)
    rmSync(path.join(bin, "jq"))
    expect((await available.of(jq())).available).toBe(false)
  })

  it("never remembers a check that could not run", async () => {
    const answers: ProbeResult[] = [
      { ran: false, reason: "x", fix: "y" },
      { ran: false, reason: "x", fix: "y" },
      { ran: true, exit: 0, stdout: "jq-1.7", stderr: "" },
    ]
    const available = checker({
      probe: () => Promise.resolve(answers.shift() ?? { ran: false, reason: "asked too often", fix: "" }),
    })
    expect((await available.of(jq())).available).toBe(false)
    expect((await available.of(jq())).available).toBe(false)
    expect(said(await available.of(jq()))).toBe("available 1.7.0")
  })

  it("recovers from a probe that throws", async () => {
    let calls = 0
    const available = checker({
      probe: () => (calls++ === 0 ? Promise.reject(new Error("bug")) : answering().probe({} as ProbeRequest)),
    })
    await expect(available.of(jq())).rejects.toThrow("bug")
    expect((await available.of(jq())).available).toBe(true)
  })

  it("keeps versions in the store between processes, and the range is compared afresh", async () => {
    const kept = new Map<string, string>()
    const store: VersionStore = {
      get: (key) => Promise.resolve(kept.get(key)),
      set: (key, version) => Promise.resolve(void kept.set(key, version)),
    }
    const first = answering()
    await checker({ probe: first.probe, store }).of(jq())
    const second = answering()
    expect(said(await checker({ probe: second.probe, store }).of(jq()))).toBe("available 1.7.1")
    expect([first.asked.length, second.asked.length, [...kept.values()]]).toEqual([1, 0, ["1.7.1"]])
    expect(
      said(await checker({ probe: second.probe, store }).of(jq({ versionCheck: { ...check, range: ">=2" } }))),
    ).toMatch(/^version_mismatch/)
  })

  it("does not run again at once a check that ran out of time", async () => {
    const { probe, asked } = answering({ exit: null })
    const one = checker({ probe })
    expect([said(await one.of(jq())), said(await one.of(jq()))]).toEqual(
      Array.from({ length: 2 }, () => expect.stringContaining("did not finish within 500 ms")),
    )
    expect(asked.length).toBe(1)
  })

  it("checks a program anew that was replaced by one of the same size and time", async () => {
    const { probe, asked } = answering()
    const one = checker({ probe })
    utimesSync(path.join(bin, "jq"), 1, 1)
    await one.of(jq())
    put("bin/new")
    renameSync(path.join(bin, "new"), path.join(bin, "jq"))
    utimesSync(path.join(bin, "jq"), 1, 1)
    await one.of(jq())
    expect(asked.length).toBe(2)
  })

  it("does not store a failed check", async () => {
    const kept = new Map<string, string>()
    const store: VersionStore = {
      get: (key) => Promise.resolve(kept.get(key)),
      set: (key, version) => Promise.resolve(void kept.set(key, version)),
    }
    await checker({ probe: answering({ stdout: "?" }).probe, store }).of(jq())
    expect(kept.size).toBe(0)
  })
})

it("knows this machine in the words of manifests", async () => {
  const here = await thisMachine(root)
  expect(["linux", "darwin", "windows"]).toContain(here.os)
  expect(["x64", "arm64", "x86", "arm"]).toContain(here.arch)
  expect([here.memoryMb > 0, (here.freeDiskMb ?? 0) > 0]).toEqual([true, true])
  expect((await thisMachine(path.join(root, "nowhere"))).freeDiskMb).toBeUndefined()
})
