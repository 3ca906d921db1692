/**
 * `curl`: a script from the web that brings the program, run in the builder.
 *
 * Guarantees: it runs only once its digest is right, and what runs is what was read for that. It reaches the host that it
 * came from and the operator's `install.hosts`, has no secret and no workspace; its home is the layer, and what it leaves
 * there is judged like any other. Only a short list of everyday programs is there for it.
 */
import { readFileSync, rmSync } from "node:fs"
import { createHash } from "node:crypto"
import { installLimits } from "../../limits.ts"
import { failed, mismatched, notHere } from "../failures.ts"
import { reachOf } from "../registries.ts"
import { programsNamed, systemProgram } from "../toolchains.ts"
import type { FetchedSpec, InstallAnswer, Known, MethodTools } from "../types.ts"
import { unacceptable } from "./accept.ts"
import { fetchIt, named, partsOf } from "./fetched.ts"

const SCRIPT = "/run/caisson/install-script"
const HOME = "/workspace"
/** What scripts that install something use. */
const EVERYDAY = [
  ..."[ awk basename cat chmod command cp cut date dirname echo env expr false file find grep head id install".split(
    " ",
  ),
  ..."ln ls mkdir mktemp mv od printf pwd readlink realpath rm rmdir sed sha256sum sha512sum sleep sort stat".split(
    " ",
  ),
  ..."tail tee test touch tr true tty uname uniq wc which xargs getconf ldd".split(" "),
  ..."bash sh curl wget tar gzip gunzip bzip2 xz zstd unzip".split(" "),
]

/** The shell that its first line names; `sh` where it names none of these. */
const shellOf = (script: Buffer): "bash" | "sh" =>
  /^#!\s*\S*(?:\/env\s+)?\S*bash\b/.test(script.toString("latin1", 0, 128)) ? "bash" : "sh"

export const knownScript = (spec: FetchedSpec, tools: MethodTools): InstallAnswer<Known> => {
  const { key, what } = named(spec)
  if (systemProgram("sh") === undefined) return notHere("there is no shell on this machine", "install one")
  const fill: Known["fill"] = async (folder, options) => {
    const fetched = await fetchIt(spec, tools, options, installLimits.scriptBytes.value)
    if (!fetched.ok) return fetched
    const script = readFileSync(fetched.value.file)
    rmSync(partsOf(tools.data, key), { recursive: true, force: true })
    const found = createHash("sha256").update(script).digest("hex")
    if (found !== fetched.value.sha256)
      return mismatched("the script was changed after it was checked", { expected: fetched.value.sha256, found })
    const shell = systemProgram(shellOf(script))
    if (shell === undefined) return failed("its script wants bash, which is not on this machine", "install bash")
    const built = await tools.build(
      {
        name: "its script",
        executables: { program: shell, children: true, spawn: programsNamed(EVERYDAY), bundles: {} },
        argv: [shell, SCRIPT],
        env: { PREFIX: HOME, INSTALL_DIR: `${HOME}/bin`, BIN_DIR: `${HOME}/bin`, CI: "1" },
        home: HOME,
        egress: reachOf([new URL(spec.url)], tools.config).egress,
        folder,
        files: { [SCRIPT]: script },
        accept: unacceptable,
      },
      options.signal,
    )
    return built.ok ? { ok: true, value: [{ name: spec.program, version: `sha256:${found}` }] } : built
  }
  return { ok: true, value: { key, what, fill } }
}
