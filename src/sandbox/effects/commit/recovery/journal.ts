/**
 * The record of one commit: what will be done, with enough identity to undo it from any state in between.
 *
 * Guarantees: `parseJournal` gives a journal whose every field is of its kind, or throws `JournalMalformed`: paths are
 * relative and made of plain names, slots are numbers of ours, attributes are ones that a commit may set.
 */
import type { FolderIdentity } from "../../../folder.ts"
import { parseRelative } from "../../names.ts"
import type { Identity } from "../identity.ts"

export type Values = Readonly<Record<string, string>>
/** Paths are in the lossless text form of `names.ts`; attribute values in base64. */
export type Operation =
  /** slot → a name that is free */
  | {
      readonly kind: "put"
      readonly path: string
      readonly slot: number
      readonly made: Identity
      readonly tree?: string
    }
  /** slot ↔ an entry that exists */
  | {
      readonly kind: "replace"
      readonly path: string
      readonly slot: number
      readonly was: Identity
      readonly made: Identity
      readonly tree?: string
    }
  /** an entry → slot */
  | { readonly kind: "remove"; readonly path: string; readonly slot: number; readonly was: Identity }
  /** mode and extended attributes, in place */
  | {
      readonly kind: "attributes"
      readonly path: string
      readonly was: Identity
      readonly mode: { readonly before: number; readonly after: number }
      readonly xattrs: { readonly before: Values; readonly after: Values }
    }

export interface Journal {
  readonly version: 2
  readonly folder: FolderIdentity
  readonly operations: readonly Operation[]
  /** whoever named the commit is told that it stands by a note of this name */
  readonly name?: string
}

export const COMMIT_NAME = /^[0-9A-Za-z]{1,64}$/

export class JournalMalformed extends Error {}

type Fields = Readonly<Record<string, unknown>>

const wrong = (where: string): never => {
  throw new JournalMalformed(`${where} is not what a journal holds`)
}
const fieldsOf = (value: unknown, where: string, known: readonly string[]): Fields => {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return wrong(where)
  const unknown = Object.keys(value).find((key) => !known.includes(key))
  return unknown === undefined ? (value as Fields) : wrong(`${where}.${unknown}`)
}
const textOf = (value: unknown, shape: RegExp, where: string): string =>
  typeof value === "string" && shape.test(value) ? value : wrong(where)
const numberOf = (value: unknown, max: number, where: string): number =>
  typeof value === "number" && Number.isInteger(value) && value >= 0 && value <= max ? value : wrong(where)

const COUNT = /^(0|[1-9]\d{0,19})$/
const SIGNED = /^-?(0|[1-9]\d{0,19})$/
const BASE64 = /^[A-Za-z0-9+/]*={0,2}$/
const MAX_MODE = 0o177777
const MAX_PERMISSIONS = 0o7777

const identityOf = (value: unknown, where: string): Identity => {
  const fields = fieldsOf(value, where, ["ino", "mode", "size", "mtimeNs"])
  return {
    ino: textOf(fields["ino"], COUNT, `${where}.ino`),
    mode: numberOf(fields["mode"], MAX_MODE, `${where}.mode`),
    size: textOf(fields["size"], COUNT, `${where}.size`),
    mtimeNs: textOf(fields["mtimeNs"], SIGNED, `${where}.mtimeNs`),
  }
}

/** The only attributes that a commit sets or takes away. */
const isPayloadName = (name: string): boolean =>
  (name.startsWith("user.") && !name.startsWith("user.overlay.")) || /^system\.posix_acl_(access|default)$/.test(name)

const valuesOf = (value: unknown, where: string): Values => {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return wrong(where)
  return Object.fromEntries(
    Object.entries(value).map(([name, text]) =>
      isPayloadName(name) ? [name, textOf(text, BASE64, `${where}.${name}`)] : wrong(`${where}.${name}`),
    ),
  )
}

const pathOf = (value: unknown, where: string): string =>
  typeof value === "string" && parseRelative(value) !== undefined ? value : wrong(where)

const SLOT_KEYS = ["kind", "path", "slot", "was", "made", "tree"]

const operationOf = (value: unknown, index: number, count: number): Operation => {
  const at = `operations[${index}]`
  const fields = fieldsOf(value, at, [...SLOT_KEYS, "mode", "xattrs"])
  const path = pathOf(fields["path"], `${at}.path`)
  const slot = (): number => numberOf(fields["slot"], count * 2, `${at}.slot`)
  const was = (): Identity => identityOf(fields["was"], `${at}.was`)
  const made = (): Identity => identityOf(fields["made"], `${at}.made`)
  const tree = fields["tree"] === undefined ? {} : { tree: textOf(fields["tree"], /^[0-9a-f]{64}$/, `${at}.tree`) }
  switch (fields["kind"]) {
    case "put":
      return { kind: "put", path, slot: slot(), made: made(), ...tree }
    case "replace":
      return { kind: "replace", path, slot: slot(), was: was(), made: made(), ...tree }
    case "remove":
      return { kind: "remove", path, slot: slot(), was: was() }
    case "attributes": {
      const mode = fieldsOf(fields["mode"], `${at}.mode`, ["before", "after"])
      const xattrs = fieldsOf(fields["xattrs"], `${at}.xattrs`, ["before", "after"])
      return {
        kind: "attributes",
        path,
        was: was(),
        mode: {
          before: numberOf(mode["before"], MAX_PERMISSIONS, `${at}.mode.before`),
          after: numberOf(mode["after"], MAX_PERMISSIONS, `${at}.mode.after`),
        },
        xattrs: {
          before: valuesOf(xattrs["before"], `${at}.xattrs.before`),
          after: valuesOf(xattrs["after"], `${at}.xattrs.after`),
        },
      }
    }
    default:
      return wrong(`${at}.kind`)
  }
}

const parseJson = (bytes: Buffer): unknown => {
  try {
    return JSON.parse(bytes.toString("utf8"))
  } catch {
    throw new JournalMalformed("it is not JSON")
  }
}

export const parseJournal = (bytes: Buffer): Journal => {
  const fields = fieldsOf(parseJson(bytes), "the journal", ["version", "folder", "operations", "name"])
  if (fields["version"] !== 2) return wrong("version")
  const folder = fieldsOf(fields["folder"], "folder", ["path", "dev", "ino", "birthNs"])
  const { operations } = fields
  if (!Array.isArray(operations)) return wrong("operations")
  const parsed = operations.map((operation, index) => operationOf(operation, index, operations.length))
  if (new Set(parsed.map(({ path }) => path)).size !== parsed.length) return wrong("a path that is there twice")
  return {
    version: 2,
    folder: {
      path: textOf(folder["path"], /^\//, "folder.path"),
      dev: textOf(folder["dev"], COUNT, "folder.dev"),
      ino: textOf(folder["ino"], COUNT, "folder.ino"),
      birthNs: textOf(folder["birthNs"], SIGNED, "folder.birthNs"),
    },
    operations: parsed,
    ...(fields["name"] === undefined ? {} : { name: textOf(fields["name"], COMMIT_NAME, "name") }),
  }
}

export interface StagedIn {
  /** a name of ours in the workspace's root */
  readonly name: string
  /** absent until it was made and looked at */
  readonly ino?: string
}
const STAGED_NAME = /^\.caisson-tx-[0-9a-f]{32}$/

/** The note about staged files that had to lie in the workspace. */
export const parsePlace = (bytes: Buffer): StagedIn => {
  const fields = fieldsOf(parseJson(bytes), "the place", ["name", "ino"])
  const name = textOf(fields["name"], STAGED_NAME, "place.name")
  return fields["ino"] === undefined ? { name } : { name, ino: textOf(fields["ino"], COUNT, "place.ino") }
}
