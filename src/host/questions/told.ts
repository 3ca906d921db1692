/**
 * Listings and routes as plain JSON: what the API answers, and what the command line shows of either host.
 *
 * Guarantees: pure. Where a manifest lies is told to the operator alone. Of files placed in a sandbox their size is told: their
 * bytes help nobody here.
 */
import { declaredKind } from "../../manifest/kinds/body.ts"
import type { DriverKind, FileContracts, JsonSchema, ToolContract } from "../../manifest/types.ts"
import type { Availability, CallProfile, DriverListing, ToolListing, UnloadedListing, WhyReport } from "../types.ts"

/** The listing's own words, without what the host keeps for itself. */
const toldAvailability = (availability: Availability): Availability => {
  if (!availability.available)
    return { available: false, code: availability.code, reason: availability.reason, fix: availability.fix }
  return { available: true, ...(availability.version === undefined ? {} : { version: availability.version }) }
}

const approvalText = ({ approval }: ToolContract): string =>
  approval.class === "policy" ? `policy:${approval.ref}` : approval.class

export interface ToldTool {
  readonly id: string
  readonly version: string
  readonly major: number
  readonly name: string
  readonly description: string
  readonly inputs: JsonSchema
  readonly outputs: JsonSchema
  readonly inputsFiles?: FileContracts
  readonly outputsFiles?: FileContracts
  readonly mutates: readonly string[]
  readonly approval: string
  readonly risk_level: number
  readonly tags: readonly string[]
  readonly timeout_ms: number
  readonly examples: ToolContract["examples"]
  readonly file?: string
  readonly drivers: readonly string[]
  readonly unauthed: number
  readonly unavailable: number
  readonly availability: Availability
}

export const toldTool = (
  { contract, drivers, unauthed, unavailable, availability }: ToolListing,
  isOperator: boolean,
): ToldTool => ({
  id: contract.id,
  version: contract.version,
  major: contract.major,
  name: contract.name,
  description: contract.description,
  inputs: contract.inputs,
  outputs: contract.outputs,
  ...(contract.inputsFiles === undefined ? {} : { inputsFiles: contract.inputsFiles }),
  ...(contract.outputsFiles === undefined ? {} : { outputsFiles: contract.outputsFiles }),
  mutates: contract.mutates.map((scope) => scope.text),
  approval: approvalText(contract),
  risk_level: contract.riskLevel,
  tags: contract.tags,
  timeout_ms: contract.timeoutMs,
  examples: contract.examples,
  ...(isOperator ? { file: contract.source.file } : {}),
  drivers,
  unauthed,
  unavailable,
  availability: toldAvailability(availability),
})

export interface ToldDriver {
  readonly id: string
  readonly version: string
  readonly major: number
  readonly kind: DriverKind
  readonly name: string
  readonly description: string
  readonly implements: readonly string[]
  readonly egress: readonly string[]
  readonly region: readonly string[]
  readonly region_declared: boolean
  readonly policy_tags: readonly string[]
  readonly file?: string
  readonly availability: Availability
}

export const toldDriver = ({ contract, availability }: DriverListing, isOperator: boolean): ToldDriver => ({
  id: contract.id,
  version: contract.version,
  major: contract.major,
  kind: declaredKind(contract),
  name: contract.name,
  description: contract.description,
  implements: contract.implements.map(({ tool }) => tool),
  egress: contract.egress.map(({ text }) => text),
  region: contract.region,
  region_declared: contract.regionDeclared,
  policy_tags: contract.policyTags,
  ...(isOperator ? { file: contract.source.file } : {}),
  availability: toldAvailability(availability),
})

/** A manifest that did not load: what it claims to be, and why it cannot be used. */
export interface ToldUnloaded {
  readonly file: string
  readonly id?: string
  readonly tools: readonly string[]
  readonly availability: Availability
}

export const toldUnloaded = (
  unloaded: readonly UnloadedListing[],
  kind: UnloadedListing["kind"],
): readonly ToldUnloaded[] =>
  unloaded
    .filter((one) => one.kind === kind)
    .map(({ file, claims: { id, tools }, availability }) => ({
      ...(id === undefined ? {} : { id }),
      file,
      tools,
      availability: toldAvailability(availability),
    }))

type PlacedFiles = Readonly<Record<string, { readonly bytes: number }>>
export interface ToldWhy extends Omit<WhyReport, "profile"> {
  readonly profile?: Omit<CallProfile, "files"> & { readonly files: PlacedFiles }
}

export const toldWhy = ({ profile, ...report }: WhyReport): ToldWhy => ({
  ...report,
  ...(profile === undefined
    ? {}
    : {
        profile: {
          ...profile,
          files: Object.fromEntries(
            Object.entries(profile.files).map(([path, bytes]) => [path, { bytes: bytes.length }]),
          ),
        },
      }),
})
