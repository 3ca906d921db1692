/** Which kind of manifest a file is: its name alone decides. */
import { basename } from "node:path"
import type { ManifestKind } from "../base-types.ts"

const KINDS: Readonly<Record<string, ManifestKind>> = {
  "TOOL.md": "tool",
  "DRIVER.md": "driver",
  "SDK.md": "driver",
  "CLI.md": "cli",
  "SECRETS.md": "secrets",
  "ACTION.md": "action",
  "POLICY.md": "policy",
}

export const manifestNames: readonly string[] = Object.keys(KINDS)

/** The kind of manifest a file name stands for; names are case-sensitive. */
export function manifestKind(file: string): ManifestKind | undefined {
  const name = basename(file)
  return Object.hasOwn(KINDS, name) ? KINDS[name] : undefined
}
