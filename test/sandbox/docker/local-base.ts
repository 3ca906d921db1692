/**
 * A base image and a package repository made from this machine's own files, so that image tests need no network.
 * The base holds a shell, perl, a Python without its library, apt and dpkg; the repository one package, `greeter`.
 */
import { execFileSync } from "node:child_process"
import { createHash } from "node:crypto"
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from "node:fs"
import { createServer, type RequestListener } from "node:http"
import { tmpdir } from "node:os"
import { join } from "node:path"
import type { Channel } from "../../../src/sandbox/backend.ts"
import {
  type ImageArchive,
  imageArchive,
  type LayerEntry,
  layerOf,
} from "../../../src/sandbox/docker/images/image-archive.ts"

const programs = [
  "sh",
  "perl",
  "python3",
  "cat",
  "ls",
  "rm",
  "true",
  "id",
  "tar",
  "apt-get",
  "apt-config",
  "dpkg",
  "dpkg-deb",
  "dpkg-query",
  "dpkg-split",
  "env",
  "sleep",
  "mkdir",
  "chmod",
  "mv",
  "diff",
  "readlink",
]
const helpers = ["/usr/sbin/ldconfig", "/usr/sbin/start-stop-daemon"]
const folders = [
  "/usr/lib/apt",
  "/usr/share/dpkg",
  `/usr/lib/${process.arch === "arm64" ? "aarch64" : "x86_64"}-linux-gnu/perl-base`,
]

/** A file, every link that leads to it, and the libraries it loads. */
export const withLibraries = (path: string): string[] => {
  const names = new Set<string>()
  const add = (file: string): void => {
    if (!existsSync(file)) return
    names.add(join(realpathSync(join(file, "..")), file.split("/").at(-1) as string))
    names.add(realpathSync(file))
  }
  add(path)
  let listed = ""
  try {
    listed = execFileSync("ldd", [path], { encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] })
  } catch {
    // A script or a static program.
  }
  for (const library of listed.matchAll(/(\/\S+) \(0x/g)) add(library[1] as string)
  return [...names]
}

interface BaseOptions {
  /** further words of its configuration */
  readonly config?: Readonly<Record<string, unknown>>
  /** path → content; a folder that anybody may write to where it ends with a slash */
  readonly texts?: Readonly<Record<string, string>>
  /** path → a program of this machine */
  readonly copies?: Readonly<Record<string, string>>
  /** programs of these folders and names are left out */
  readonly without?: readonly string[]
}

/** `mark` makes the image, and whatever is built on it, a new one; `sources` is its apt's list. */
export const localBase = async (
  mark: string,
  sources = "",
  repository = "caisson/test-base",
  { config, texts: more = {}, copies = {}, without = [] }: BaseOptions = {},
): Promise<ImageArchive> => {
  const found = new Set<string>()
  for (const path of [...programs.map((name) => `/usr/bin/${name}`), ...helpers, process.execPath])
    for (const file of withLibraries(path)) found.add(file)
  for (const folder of folders) {
    for (const file of execFileSync("find", [folder, "-type", "f"], { encoding: "utf8" })
      .split("\n")
      .filter((name) => name !== ""))
      for (const needed of /\.(pm|pl|h)$/.test(file) ? [file] : withLibraries(file)) found.add(needed)
  }
  const list = [...found]
    .filter((path) => path.startsWith("/usr/") && !without.some((name) => path.startsWith(name)))
    .map((path) => path.slice(1))
    .sort()
  const files = execFileSync(
    "tar",
    ["-C", "/", "--sort=name", "--mtime=@0", "--numeric-owner", "--owner=0", "--group=0", "-cf", "-", "-T", "-"],
    { input: list.join("\n"), maxBuffer: 1 << 29 },
  )
  const links: LayerEntry[] = ["bin", "sbin", "lib", "lib64"]
    .filter((name) => existsSync(`/${name}`))
    .map((path) => ({ path, mode: 0o777, link: `usr/${path}` }))
  const dirs: LayerEntry[] = [
    "tmp",
    "proc",
    "sys",
    "dev",
    "root",
    "var/lib/dpkg/info",
    "var/lib/dpkg/updates",
    "var/lib/apt/lists/partial",
    "var/cache/apt/archives/partial",
    "var/log/apt",
    "etc/apt/apt.conf.d",
    "etc/apt/sources.list.d",
    "etc/apt/preferences.d",
    "usr/lib64",
  ]
    .map((path) => ({ path: `${path}/`, mode: 0o755 }))
    .filter(({ path }) => more[path] === undefined)
  const texts: LayerEntry[] = Object.entries({
    "var/lib/dpkg/status": "",
    "etc/apt/sources.list": sources,
    "etc/passwd": "root:x:0:0:root:/root:/bin/sh\n",
    "etc/group": "root:x:0:\n",
    "etc/os-release": `NAME=${mark}\n`,
    ...more,
  }).map(([path, text]) =>
    path.endsWith("/")
      ? { path, mode: 0o777 }
      : { path, mode: text.startsWith("#!") ? 0o755 : 0o644, content: Buffer.from(text) },
  )
  const copied: LayerEntry[] = Object.entries(copies).map(([path, source]) => ({
    path,
    mode: 0o755,
    content: readFileSync(source),
  }))
  return imageArchive([await layerOf([...links, ...dirs, ...texts, ...copied]), files], {
    architecture: process.arch === "arm64" ? "arm64" : "amd64",
    repository,
    tag: repository === "caisson/base" ? "bookworm" : mark,
    env: ["PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"],
    ...(config === undefined ? {} : { config }),
  })
}

/** Path → content of a repository with one package, which installs /usr/bin/greet. */
export const localRepository = (name = "greeter"): ReadonlyMap<string, Buffer> => {
  const dir = mkdtempSync(join(tmpdir(), "caisson-repo-"))
  try {
    const root = join(dir, "greeter")
    mkdirSync(join(root, "DEBIAN"), { recursive: true })
    mkdirSync(join(root, "usr/bin"), { recursive: true })
    const architecture = execFileSync("dpkg", ["--print-architecture"], { encoding: "utf8" }).trim()
    const control = `Package: ${name}\nVersion: 1.0\nArchitecture: ${architecture}\nMaintainer: nobody <nobody@good.test>\nDescription: greets\n`
    writeFileSync(join(root, "DEBIAN/control"), control)
    writeFileSync(join(root, "usr/bin/greet"), "#!/usr/bin/sh\necho greetings\n")
    chmodSync(join(root, "usr/bin/greet"), 0o755)
    execFileSync("dpkg-deb", ["--root-owner-group", "--build", root, join(dir, "greeter.deb")], { stdio: "ignore" })
    const deb = readFileSync(join(dir, "greeter.deb"))
    const sha256 = (bytes: Buffer): string => createHash("sha256").update(bytes).digest("hex")
    const packages = Buffer.from(`${control}Filename: ./greeter.deb\nSize: ${deb.length}\nSHA256: ${sha256(deb)}\n\n`)
    const release = Buffer.from(
      `Architectures: ${architecture}\nSHA256:\n ${sha256(packages)} ${packages.length} Packages\n`,
    )
    return new Map([
      ["/greeter.deb", deb],
      ["/Packages", packages],
      ["/Release", release],
    ])
  } finally {
    rmSync(dir, { recursive: true, force: true })
  }
}

/** The one registry that a build may reach: http://repo.test/, through the proxy and no other way; no name resolves. */
export const serveRepository = (
  channel: Channel,
  repository: ReadonlyMap<string, Buffer>,
  requests: string[],
): AsyncDisposable => {
  const listener: RequestListener = (request, response) => {
    const { host, pathname } = new URL(request.url ?? "/", `http://${request.headers.host}`)
    requests.push(`${host} ${pathname}`)
    const content = host === "repo.test" ? repository.get(pathname) : undefined
    response.writeHead(content === undefined ? 404 : 200, { "content-length": content?.length ?? 0 })
    response.end(content)
  }
  const http = createServer(listener)
  for (const server of [channel.proxy, channel.transparent.get(80)])
    server?.on("connection", (socket) => http.emit("connection", socket))
  return {
    async [Symbol.asyncDispose]() {
      http.closeAllConnections()
    },
  }
}
