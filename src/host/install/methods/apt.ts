/**
 * `apt`: Debian packages with all they need beyond the base system, as a folder of its own.
 *
 * Guarantees: apt resolves, fetches and verifies them in the builder, from this machine's own sources (or the operator's),
 * which are all that it reaches; nothing of this machine's is changed and no privilege is needed. They are unpacked in a
 * second sandbox, without network. Maintainer scripts run there, with the folder as their root; one that needs a whole
 * system fails and is named.
 * Assumes: what a program was built to find below /usr it also finds by its environment, which a layer brings along.
 */
import { createHash } from "node:crypto"
import { readdirSync, readFileSync, statSync } from "node:fs"
import { join } from "node:path"
import { installLimits } from "../../limits.ts"
import { failed, notHere } from "../failures.ts"
import { findNode } from "../interpreters.ts"
import { saysMismatch, tellsOfFetch } from "../managers.ts"
import { reachOf } from "../registries.ts"
import { requestOf } from "../spec.ts"
import { programsNamed, systemProgram } from "../toolchains.ts"
import type { BuildRequest, InstallAnswer, InstalledPackage, Known, MethodTools, PackageRequest } from "../types.ts"
import { unacceptable } from "./accept.ts"
import { APT_INSIDE, keptSource, type SourceText } from "./apt-sources.ts"
import { baseStatus } from "./debian-base.ts"
import { DEBIAN_RUNNER, runnerFiles, saidBy } from "./runner-files.ts"

const STATUS = "/var/lib/dpkg/status"
const MOST_BYTES = 16 * 2 ** 20
const MOST_FILES = 256

/** apt reads nothing of the machine's but this; nothing is asked, and nothing is locked that others use. */
const CONFIG = `
Dir::State "/tmp/apt/state";
Dir::State::Lists "/tmp/apt/lists";
Dir::State::status "${APT_INSIDE}/status";
Dir::Cache "/tmp/apt/cache";
Dir::Cache::archives "/workspace/.archives";
Dir::Log "/tmp/apt/log";
Dir::Etc "${APT_INSIDE}";
Dir::Etc::main "none";
Dir::Etc::parts "none.d";
APT::Sandbox::User "";
APT::Install-Recommends "false";
APT::Get::Assume-Yes "true";
APT::Cmd::Disable-Script-Warning "true";
Debug::NoLocking "true";
Acquire::Languages "none";
Acquire::Retries "1";
`

const STARTED = [
  ..."apt-get apt-key apt-config dpkg dpkg-deb dpkg-split dpkg-query dpkg-trigger dpkg-maintscript-helper".split(" "),
  ..."update-alternatives deb-systemd-helper ldconfig gpgv gpgconf sqv tar gzip xz bzip2 zstd perl sh bash".split(" "),
  ..."[ awk basename cat chgrp chmod chown cmp comm cp cut date dirname echo env expr false find getent grep head id".split(
    " ",
  ),
  ..."install ln ls md5sum mkdir mktemp mv od printf pwd readlink realpath rm rmdir sed sha256sum sort stat tail".split(
    " ",
  ),
  ..."tee test touch tr true uname uniq wc which xargs".split(" "),
]

const bytesOf = (file: string): Buffer | undefined => {
  const facts = statSync(file, { throwIfNoEntry: false })
  return facts?.isFile() === true && facts.size <= MOST_BYTES ? readFileSync(file) : undefined
}
const namesIn = (folder: string): readonly string[] => {
  try {
    return readdirSync(folder).sort().slice(0, MOST_FILES)
  } catch {
    return []
  }
}

const sourcesOf = (own: string | undefined): readonly SourceText[] => {
  const files =
    own === undefined
      ? ["sources.list", ...namesIn("/etc/apt/sources.list.d").map((name) => `sources.list.d/${name}`)].map(
          (name) => [name, join("/etc/apt", name)] as const,
        )
      : [[`sources.list.d/operator${own.endsWith(".sources") ? ".sources" : ".list"}`, own] as const]
  return files.flatMap(([name, file]) => {
    const bytes = /\.(?:list|sources)$/.test(name) ? bytesOf(file) : undefined
    return bytes === undefined ? [] : [{ name, text: bytes.toString("utf8") }]
  })
}

/** Keys that sources in /etc/apt name, or that hold for all of them; never the logins that may lie beside. */
const keys = (): Readonly<Record<string, Uint8Array>> => {
  const names = ["trusted.gpg.d", "keyrings"].flatMap((folder) =>
    namesIn(join("/etc/apt", folder)).map((name) => `${folder}/${name}`),
  )
  const found = ["trusted.gpg", ...names.filter((name) => /\.(?:gpg|asc|pgp)$/.test(name))].flatMap((name) => {
    const bytes = bytesOf(join("/etc/apt", name))
    return bytes === undefined ? [] : [[`${APT_INSIDE}/${name}`, new Uint8Array(bytes)] as const]
  })
  return Object.fromEntries(found)
}

const encoded = (text: string): Uint8Array => new TextEncoder().encode(text)

/** What apt fetched, by the names of the files. */
const fetched = (folder: string): readonly InstalledPackage[] =>
  namesIn(join(folder, ".archives")).flatMap((file) => {
    const [, name, version] = /^([^_]+)_([^_]+)_[^_]+\.deb$/.exec(file) ?? []
    return name === undefined || version === undefined ? [] : [{ name, version: version.replaceAll("%3a", ":") }]
  })

export const knownDebian = (packages: readonly PackageRequest[], tools: MethodTools): InstallAnswer<Known> => {
  const { config, build } = tools
  const lacking = ["apt-get", "dpkg-deb"].find((name) => systemProgram(name) === undefined)
  const status = bytesOf(STATUS)
  if (lacking !== undefined || status === undefined)
    return notHere(
      `packages of apt need a Debian system, and there is no ${lacking ?? STATUS} here`,
      "use a driver with another install method",
    )
  const sources = sourcesOf(config.install.aptSources).map(({ name, text }) => ({
    name,
    ...keptSource({ name, text }),
  }))
  const node = findNode(config)
  if (!node.ok) return notHere(node.reason, node.fix)
  const language = createHash("sha256")
    .update(JSON.stringify(sources.map(({ text }) => text)))
    .digest("hex")
  const request = requestOf({ source: "apt", packages }, "apt", language)
  if (!request.ok) return request
  const { key, what, requirements } = request.value
  const { program, inside, bundles } = node.value
  const fill: Known["fill"] = async (folder, { signal, tell }) => {
    const urls = sources.flatMap((source) => source.urls)
    if (urls.length === 0) return failed("this machine has no sources of packages by http", "see /etc/apt/sources.list")
    const reach = reachOf(urls, config)
    if (reach.closed.length > 0)
      return failed(
        `${what} comes from ${reach.closed.join(", ")}, which \`egress.allow\` in caisson.yaml leaves out`,
        "add it there, or name other sources as `install.apt_sources`",
      )
    let count = 0
    const step = (act: "fetch" | "unpack", more: Partial<BuildRequest>): BuildRequest => ({
      name: "apt",
      executables: { program, children: true, spawn: programsNamed(STARTED), bundles },
      argv: [inside, DEBIAN_RUNNER, JSON.stringify({ do: act, packages: requirements })],
      env: { APT_CONFIG: `${APT_INSIDE}/apt.conf` },
      egress: [],
      folder,
      accept: unacceptable,
      explain: (said) => saysMismatch(said) ?? saidBy("apt cannot bring it", said),
      ...more,
    })
    const files = {
      ...runnerFiles(["debian.mjs"]),
      ...keys(),
      ...Object.fromEntries(sources.map(({ name, text }) => [`${APT_INSIDE}/${name}`, encoded(text)])),
      [`${APT_INSIDE}/apt.conf`]: encoded(CONFIG),
      [`${APT_INSIDE}/status`]: encoded(baseStatus(status.toString("utf8"))),
    }
    const got = await build(
      step("fetch", {
        egress: reach.egress,
        files,
        line: (text) => {
          if (!tellsOfFetch(text)) return
          count += 1
          tell({ phase: "fetching", what, fetched: count })
        },
      }),
      signal,
    )
    if (!got.ok) return got
    const brought = fetched(folder).slice(0, installLimits.layerFiles.value)
    tell({ phase: "unpacking", what })
    const unpacked = await build(step("unpack", { files: runnerFiles(["debian.mjs"]) }), signal)
    return unpacked.ok ? { ok: true, value: brought } : unpacked
  }
  return { ok: true, value: { key, what, fill } }
}
