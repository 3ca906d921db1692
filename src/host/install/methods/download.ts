/**
 * `download`: one file from the web, an archive with the program in it or the program itself.
 *
 * Guarantees: nothing is unpacked before its digest is right. The unpacker runs in a sandbox without network, is fed the
 * bytes by the host, and what it wrote is dropped where those turn out to be others than were vouched for. Members that
 * lead out, are devices, or carry another's rights are refused, and so is an archive without the program.
 */
import { rmSync } from "node:fs"
import { basename } from "node:path"
import { installLimits } from "../../limits.ts"
import { failed } from "../failures.ts"
import { findNode } from "../interpreters.ts"
import { programsNamed } from "../toolchains.ts"
import type { FetchedSpec, InstallAnswer, Known, MethodTools } from "../types.ts"
import { unacceptable } from "./accept.ts"
import { fetchIt, named, partsOf } from "./fetched.ts"
import { runnerFiles, saidBy, UNPACKER } from "./runner-files.ts"

/** What undoes the forms that Node itself cannot. */
const UNDO = ["xz", "bzip2", "zstd"]

const unpack = async (
  spec: FetchedSpec,
  { config, build }: MethodTools,
  input: { readonly file: string; readonly sha256: string },
  folder: string,
  signal: AbortSignal,
): Promise<InstallAnswer<undefined>> => {
  const node = findNode(config)
  if (!node.ok) return failed(`it cannot be unpacked: ${node.reason}`, node.fix)
  const { program, inside, bundles } = node.value
  const { layerFiles, layerDepth } = installLimits
  const request = {
    program: spec.program,
    bytes: Math.min(installLimits.layerBytes.value, config.install.diskBytes),
    files: layerFiles.value,
    depth: layerDepth.value,
  }
  return await build(
    {
      name: "the unpacker",
      executables: { program, children: true, spawn: programsNamed(UNDO), bundles },
      argv: [inside, UNPACKER, JSON.stringify(request)],
      env: {},
      egress: [],
      folder,
      files: runnerFiles(["unpack.mjs", "unpack-tar.mjs", "unpack-zip.mjs", "unpack-to.mjs"]),
      input,
      accept: unacceptable,
      explain: (said) => saidBy("the archive is refused", said),
    },
    signal,
  )
}

export const knownDownload = (spec: FetchedSpec, tools: MethodTools): InstallAnswer<Known> => {
  const { key, what } = named(spec)
  const fill: Known["fill"] = async (folder, options) => {
    const fetched = await fetchIt(spec, tools, options, installLimits.downloadBytes.value)
    if (!fetched.ok) return fetched
    options.tell({ phase: "unpacking", what })
    const { file, sha256 } = fetched.value
    const unpacked = await unpack(spec, tools, { file, sha256 }, folder, options.signal)
    rmSync(partsOf(tools.data, key), { recursive: true, force: true })
    return unpacked.ok ? { ok: true, value: [{ name: basename(spec.program), version: `sha256:${sha256}` }] } : unpacked
  }
  return { ok: true, value: { key, what, fill } }
}
