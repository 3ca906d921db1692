/**
 * Fetches Debian packages with what they need, or unpacks them, for the host that started it in a sandbox. Has no
 * dependencies.
 *
 * `fetch`: apt resolves, fetches and verifies; archives and their order are left in `.archives`. `unpack`: each is unpacked
 * into the folder that this is started in, its maintainer scripts run with `DPKG_ROOT` set to it, and links that mean the
 * system's root are made to mean the folder's.
 * Guarantees: a script that fails, which is what one does that needs a whole system, is named and ends it with exit 3.
 */
import { spawnSync } from "node:child_process"
import {
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  symlinkSync,
  unlinkSync,
  writeFileSync,
} from "node:fs"
import { dirname, join, relative } from "node:path"

const ARCHIVES = ".archives"
const ORDER = join(ARCHIVES, "order.json")

const say = (why) => {
  process.stderr.write(`caisson: ${why}\n`)
  process.exit(3)
}
const lastLine = (text) => text.trim().split("\n").at(-1)?.slice(0, 200) ?? ""

const apt = (...words) => {
  const { status, stdout, stderr, error } = spawnSync("apt-get", ["-q", ...words], {
    encoding: "utf8",
    maxBuffer: 1 << 24,
  })
  process.stdout.write(stdout ?? "")
  process.stderr.write(stderr ?? "")
  if (status === 0) return stdout
  const why = (stderr ?? "").split("\n").find((line) => line.startsWith("E: "))
  return say(`apt-get ${words[0]} failed: ${why?.slice(3) ?? error?.code ?? `exit ${status}`}`)
}

const fetch = (packages) => {
  for (const folder of ["/tmp/apt/lists/partial", "/tmp/apt/cache", "/tmp/apt/log", join(ARCHIVES, "partial")])
    mkdirSync(folder, { recursive: true })
  apt("update", "-o", "APT::Update::Error-Mode=any")
  const planned = apt("install", "--simulate", "--", ...packages)
  const steps = (word) =>
    [...planned.matchAll(new RegExp(`^${word} (\\S+) .*?\\((\\S+) .*\\[(\\w+)\\]\\)`, "gm"))].map(
      ([, name, version, arch]) => ({
        name: name.replace(/:.*/, ""),
        version,
        file: `${name.replace(/:.*/, "")}_${version.replaceAll(":", "%3a")}_${arch}.deb`,
      }),
    )
  const removed = /^Remv (\S+)/m.exec(planned)?.[1]
  if (removed !== undefined) say(`it would take ${removed} away, which the system is made of`)
  const unpacked = steps("Inst")
  if (unpacked.length === 0) say(`${packages.join(", ")} is part of every system already; a driver can use it as it is`)
  apt("install", "--download-only", "--", ...packages)
  rmSync(join(ARCHIVES, "partial"), { recursive: true, force: true })
  rmSync(join(ARCHIVES, "lock"), { force: true })
  const absent = unpacked.find(({ file }) => !existsSync(join(ARCHIVES, file)))
  if (absent !== undefined) say(`${absent.file} was not fetched`)
  writeFileSync(ORDER, JSON.stringify({ unpack: unpacked, configure: steps("Conf") }))
}

const maintain = (script, { name, version }, ...words) => {
  const file = `/tmp/control/${name}/${script}`
  if (!existsSync(file)) return
  const root = process.cwd()
  const { status, signal, stderr, error } = spawnSync(file, words, {
    encoding: "utf8",
    maxBuffer: 1 << 22,
    stdio: ["ignore", "ignore", "pipe"],
    env: {
      ...process.env,
      DPKG_ROOT: root,
      DPKG_ADMINDIR: join(root, "var/lib/dpkg"),
      DPKG_MAINTSCRIPT_NAME: script,
      DPKG_MAINTSCRIPT_PACKAGE: name,
      DPKG_MAINTSCRIPT_PACKAGE_REFCOUNT: "1",
      DPKG_RUNNING_VERSION: version,
      DEBIAN_FRONTEND: "noninteractive",
    },
  })
  if (status === 0) return
  const why = error?.code ?? signal ?? `exit ${status}`
  say(
    `the maintainer script ${script} of ${name} does not work outside a whole system (${why}): ${lastLine(stderr ?? "")}`,
  )
}

/** A link to `/usr/…` means the package's own root; one that leads to nothing there is left out. */
const turnLinks = (folder) => {
  for (const name of readdirSync(folder)) {
    const path = join(folder, name)
    const stat = lstatSync(path)
    if (stat.isDirectory()) turnLinks(path)
    if (!stat.isSymbolicLink()) continue
    const target = readlinkSync(path)
    if (!target.startsWith("/")) continue
    const own = join(".", target)
    unlinkSync(path)
    if (lstatSync(own, { throwIfNoEntry: false }) !== undefined) symlinkSync(relative(dirname(path), own), path)
  }
}

const unpack = () => {
  const order = JSON.parse(readFileSync(ORDER, "utf8"))
  for (const folder of ["var/lib/dpkg/info", "var/lib/dpkg/alternatives", "etc/alternatives", "/tmp/control"])
    mkdirSync(folder, { recursive: true })
  for (const each of order.unpack) {
    const archive = join(ARCHIVES, each.file)
    for (const words of [
      ["--control", archive, `/tmp/control/${each.name}`],
      ["--extract", archive, "."],
    ]) {
      if (words[0] === "--extract") maintain("preinst", each, "install")
      const { status, stderr } = spawnSync("dpkg-deb", words, { encoding: "utf8" })
      if (status !== 0) say(`${each.file} cannot be unpacked: ${lastLine(stderr ?? "")}`)
    }
  }
  for (const each of order.configure) maintain("postinst", each, "configure", "")
  rmSync(ARCHIVES, { recursive: true })
  turnLinks(".")
}

const { do: what, packages } = JSON.parse(process.argv[2] ?? "{}")
if (what === "fetch") fetch(packages)
else unpack()
