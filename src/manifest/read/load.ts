/**
 * One manifest file's bytes → a frozen contract or diagnostics.
 *
 * Guarantees: never throws on any bytes; the kind comes from the file's name alone; the same bytes, name and mode
 * give the same result. Pure: reads nothing but its arguments and our own schemas.
 */
import { basename } from "node:path"
import { readProvider } from "../kinds/auth-provider.ts"
import { readAction } from "../contracts/action.ts"
import { codeId, driverOfCode, servedBy } from "../contracts/composed.ts"
import { readCli } from "../contracts/cli-bundle.ts"
import type { Context, Lifted } from "../values/context.ts"
import { createReport, shown } from "../values/diagnostics.ts"
import { readDriver } from "../contracts/driver.ts"
import { readFrontmatter } from "./frontmatter.ts"
import { driverKind, manifestKind, manifestNames } from "./kind.ts"
import { readPolicy } from "../contracts/policy.ts"
import { readSecrets } from "../contracts/secrets.ts"
import { readTool } from "../contracts/tool.ts"
import type { JsonObject, LoadResult, Manifest, ManifestKind, ManifestMode } from "../types.ts"

function readKind(
  kind: ManifestKind,
  front: JsonObject,
  context: Context,
): { readonly manifest: Manifest; readonly lifted?: Lifted } | undefined {
  if (kind === "tool") {
    const tool = readTool(front, context)
    return tool === undefined ? undefined : { manifest: tool.contract, lifted: tool.lifted }
  }
  if (kind === "code") {
    const entries =
      servedBy(front) ??
      context.links?.defaultFor(codeId(front)).map(({ id, version }) => ({ tool: id, version: `^${version}` })) ??
      []
    const origin = { written: front, commands: new Map<number, readonly string[]>() }
    const driver = readDriver(driverOfCode(front, entries, context), context, origin)
    return driver === undefined ? undefined : { manifest: driver }
  }
  const manifest: Manifest | undefined =
    kind === "cli"
      ? readCli(front, context)
      : kind === "driver"
        ? readDriver(front, context)
        : kind === "secrets"
          ? readSecrets(front, context)
          : kind === "action"
            ? readAction(front, context)
            : kind === "auth"
              ? readProvider(front, context)
              : readPolicy(front, context)
  return manifest === undefined ? undefined : { manifest }
}

interface Loaded {
  readonly result: LoadResult
  readonly lifted: Lifted
}

/** Front matter that was already parsed; `links` lets paths between manifests be followed. */
export function loadFront(
  file: string,
  kind: ManifestKind,
  front: JsonObject,
  mode: ManifestMode,
  beside: Pick<Context, "links" | "code"> = {},
): Loaded {
  const report = createReport(file)
  const refused = (): Loaded => ({ result: { ok: false, file, kind, diagnostics: report.diagnostics }, lifted: {} })
  try {
    const named = driverKind(file)
    if (named !== undefined && typeof front["kind"] === "string" && front["kind"] !== named)
      report.error(
        "file-kind",
        "kind",
        `a driver of kind ${shown(front["kind"], 40)} does not lie in ${basename(file)}`,
        `write \`kind: ${named}\`, or name the file DRIVER.md`,
      )
    const made = readKind(kind, front, { file, mode, report, ...beside })
    if (made === undefined || report.failed) return refused()
    return { result: { ok: true, manifest: made.manifest, diagnostics: report.diagnostics }, lifted: made.lifted ?? {} }
  } catch (error) {
    report.error(
      "internal",
      "",
      `the manifest could not be read: ${shown(error instanceof Error ? error.message : String(error), 160)}`,
      "report this as a bug, with the manifest",
    )
    return refused()
  }
}

/** Read one manifest on its own. Paths to other manifests stay as written. */
export function loadManifest(file: string, bytes: Uint8Array, mode: ManifestMode): LoadResult {
  const report = createReport(file)
  const kind = manifestKind(file)
  if (kind === undefined) {
    report.error(
      "unknown-file",
      "",
      `\`${shown(basename(file))}\` is not the name of a manifest`,
      `name it one of ${manifestNames.join(", ")}`,
    )
    return { ok: false, file, kind: "unknown", diagnostics: report.diagnostics }
  }
  const front = readFrontmatter(bytes, report)
  if (front === undefined) return { ok: false, file, kind, diagnostics: report.diagnostics }
  return loadFront(file, kind, front, mode).result
}
