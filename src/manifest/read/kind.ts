/** Which kind of manifest a file is: its name alone decides. */
import { basename } from "node:path"
import { formats } from "../formats/formats.ts"
import type { DriverKind, ManifestKind } from "../base-types.ts"

const KINDS: Readonly<Record<string, ManifestKind>> = {
  "TOOL.md": "tool",
  "DRIVER.md": "driver",
  "SDK.md": "driver",
  "HTTP.md": "driver",
  "MCP.md": "driver",
  "CLI.md": "cli",
  "SECRETS.md": "secrets",
  "ACTION.md": "action",
  "POLICY.md": "policy",
  "CODE.md": "code",
  "AUTH.md": "auth",
}

export const manifestNames: readonly string[] = [...Object.keys(KINDS), ...formats.map(({ files }) => files)]

/** The kind of manifest a file name stands for; names are case-sensitive. */
export function manifestKind(file: string): ManifestKind | undefined {
  const name = basename(file)
  return Object.hasOwn(KINDS, name) ? KINDS[name] : undefined
}

/** The one kind of driver that a file of this name can hold; DRIVER.md holds any. */
const DRIVERS: Readonly<Record<string, DriverKind>> = { "SDK.md": "sdk", "HTTP.md": "http", "MCP.md": "mcp" }

export function driverKind(file: string): DriverKind | undefined {
  const name = basename(file)
  return Object.hasOwn(DRIVERS, name) ? DRIVERS[name] : undefined
}
