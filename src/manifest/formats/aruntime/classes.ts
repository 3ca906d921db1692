/** The seven classes of side effects of ARuntime, and what each means for a contract here. */
import type { JsonObject } from "../../base-types.ts"

export interface EffectClass {
  /** as ARuntime writes it; other spellings are led back to it */
  readonly name: string
  readonly risk: 0 | 1 | 2 | 3
  readonly approval: "auto" | "on-mutate" | "always"
  /** effects that throwing a layer away does not undo are assumed, wherever the contract says that it reaches */
  readonly outside: boolean
  /** it cannot say which files of a workspace it changes */
  readonly files: boolean
  readonly constraints?: JsonObject
}

export const effectClasses: readonly EffectClass[] = [
  { name: "read-only", risk: 0, approval: "auto", outside: false, files: false },
  { name: "reversible write", risk: 1, approval: "on-mutate", outside: false, files: true },
  { name: "irreversible", risk: 3, approval: "always", outside: true, files: true },
  { name: "financial/high-impact", risk: 3, approval: "always", outside: true, files: true },
  { name: "external communication", risk: 2, approval: "always", outside: true, files: false },
  // What runs code of others runs where the sandbox is, never in the host and never elsewhere.
  {
    name: "code execution",
    risk: 2,
    approval: "always",
    outside: false,
    files: true,
    constraints: { require_kind: ["cli", "sdk"], forbid: ["builtin", "http", "mcp"] },
  },
  { name: "administrative", risk: 3, approval: "always", outside: true, files: true },
]

const plain = (name: string): string => name.toLowerCase().replaceAll(/[^a-z]+/g, "")
const SPELLINGS: Readonly<Record<string, string>> = {
  readonly: "read-only",
  read: "read-only",
  reversiblewrite: "reversible write",
  reversible: "reversible write",
  irreversible: "irreversible",
  irreversiblewrite: "irreversible",
  financialhighimpact: "financial/high-impact",
  financial: "financial/high-impact",
  highimpact: "financial/high-impact",
  externalcommunication: "external communication",
  codeexecution: "code execution",
  administrative: "administrative",
}

export const effectClass = (written: string): EffectClass | undefined => {
  const name = Object.hasOwn(SPELLINGS, plain(written)) ? SPELLINGS[plain(written)] : undefined
  return effectClasses.find((each) => each.name === name)
}
