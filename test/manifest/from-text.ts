/** Manifests as short text in tests. */
import { loadManifest } from "../../src/manifest/read/load.ts"
import type {
  ActionContract,
  DriverContract,
  LoadResult,
  ManifestMode,
  PolicyContract,
  SecretsInventory,
  ToolContract,
} from "../../src/manifest/types.ts"

export const bytes = (text: string): Uint8Array => new TextEncoder().encode(text)

export const load = (file: string, front: string, mode: ManifestMode = "compat"): LoadResult =>
  loadManifest(file, bytes(`---\n${front.trim()}\n---\n`), mode)

export const errors = (result: LoadResult): string[] =>
  result.diagnostics.filter((d) => d.severity === "error").map((d) => `${d.rule} @ ${d.path}`)
export const warnings = (result: LoadResult): string[] =>
  result.diagnostics.filter((d) => d.severity === "warning").map((d) => `${d.rule} @ ${d.path}`)

function manifest(result: LoadResult): unknown {
  if (!result.ok)
    throw new Error(`refused: ${result.diagnostics.map((d) => `${d.rule} ${d.path}: ${d.message}`).join("; ")}`)
  return result.manifest
}
export const asTool = (result: LoadResult): ToolContract => manifest(result) as ToolContract
export const asDriver = (result: LoadResult): DriverContract => manifest(result) as DriverContract
export const asSecrets = (result: LoadResult): SecretsInventory => manifest(result) as SecretsInventory
export const asAction = (result: LoadResult): ActionContract => manifest(result) as ActionContract
export const asPolicy = (result: LoadResult): PolicyContract => manifest(result) as PolicyContract

export const toolFront = (extra = "", id = "t.one"): string => `
name: One
id: ${id}
description: A tool for tests.
version: 1.0.0
inputs:
  type: object
  additionalProperties: false
  required: [q]
  properties: { q: { type: string }, size: { type: integer }, mode: { enum: [fast, slow] } }
outputs: { type: object, required: [a], properties: { a: { type: string }, b: { type: string } } }
${extra}`

export interface CliParts {
  readonly id?: string
  readonly network?: string
  readonly sandbox?: string
  readonly implements?: string
  readonly extra?: string
}

export const cliFront = (parts: CliParts = {}): string => `
name: Prog
id: ${parts.id ?? "prog"}
description: A driver for tests.
version: 1.0.0
kind: cli
bin: prog
version_check: { cmd: prog --version, parse: '(\\d+\\.\\d+)', range: ">=1" }
${parts.network === undefined ? "" : `network: ${parts.network}`}
sandbox: ${parts.sandbox ?? '{ fs: { read: ["**"], write: ["out/**"] }, exec: { allow: true, spawn: [git] }, env: { pass: [LANG] } }'}
implements: ${parts.implements ?? '[{ tool: t.one, version: ^1.0.0, metadata: { cli: { argv: [go, "${input.q}"] } } }]'}
${parts.extra ?? ""}`
