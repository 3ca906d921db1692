/** What `download` and `curl` share: by which key they are remembered, what may be reached, and who vouches for it. */
import { createHash } from "node:crypto"
import { join } from "node:path"
import { installDownloadsFolder } from "../../../data-folder/paths.ts"
import { shown } from "../../../manifest/values/diagnostics.ts"
import { failed } from "../failures.ts"
import { reachOf } from "../registries.ts"
import { fetchWhole, type Transferred } from "../transfer.ts"
import type { FetchedSpec, FillOptions, InstallAnswer, MethodTools } from "../types.ts"

const FORMAT = 1

interface Named {
  readonly key: string
  readonly what: string
}

export const named = ({ source, url, sha256, program }: FetchedSpec): Named => ({
  key: createHash("sha256")
    .update(JSON.stringify([FORMAT, source, url, sha256 ?? null, program, process.platform, process.arch]))
    .digest("hex"),
  what: shown(url, 120),
})

/** Where parts of it are kept. */
export const partsOf = (data: string, key: string): string => join(installDownloadsFolder(data), key)

export const fetchIt = async (
  spec: FetchedSpec,
  { config, data, ask }: MethodTools,
  options: FillOptions,
  most: number,
): Promise<InstallAnswer<Transferred>> => {
  const { key, what } = named(spec)
  if (spec.sha256 === undefined && config.install.withoutHash !== "allow")
    return failed(
      `${what} comes without a hash: whatever the server sends would run`,
      "add `verify_sha256` to the driver's method; an operator who accepts the risk sets `install: { without_hash: allow }` in caisson.yaml",
    )
  const reach = reachOf([new URL(spec.url)], config)
  if (reach.closed.length > 0)
    return failed(
      `${what} comes from ${reach.closed.join(", ")}, which \`egress.allow\` in caisson.yaml leaves out`,
      "add it there",
    )
  return await fetchWhole(
    {
      url: spec.url,
      ...(spec.sha256 === undefined ? {} : { sha256: spec.sha256 }),
      egress: reach.egress,
      folder: partsOf(data, key),
      most,
      stallMs: config.install.stallMs,
      wholeMs: config.install.downloadMs,
      what,
    },
    ask,
    options,
  )
}
