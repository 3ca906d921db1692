/** What the store remembers of a held call: enough to list it, to decide who may decide, and to find its layer. */
import type { Role } from "../access/caller.ts"
import type { JsonObject } from "../../manifest/types.ts"
import type { FolderIdentity } from "../../sandbox/folder.ts"
import type { HeldCall } from "../store/store.ts"

export interface HeldFacts {
  readonly tool: { readonly id: string; readonly major: number; readonly version: string; readonly digest: string }
  readonly driver: string
  /** absent: this host's own */
  readonly tenant?: string
  /** for whom the call was made, and by whom */
  readonly user: string
  readonly actor: string
  readonly roles: readonly Role[]
  /** where it was made from, where that was told */
  readonly address?: string
  readonly folder: FolderIdentity
  readonly effects: number
  readonly approval: "auto" | "on-mutate" | "always"
  /** what its action stands for, once it is committed */
  readonly fires?: readonly string[]
  /** does a rule of the operator's say whose yes counts */
  readonly ruled: boolean
  /** digests of what led to the layer: the driver's manifest, the call's input (with its id), the sealed profile */
  readonly bound?: { readonly driver: string; readonly input: string; readonly profile: string }
  /** digests of the layer's description and of what the call answered */
  readonly layer: string
  readonly answer: string
}

/** What is told of a call whose row in the store was damaged: that it is there, to its operator. */
export const unknownFacts: HeldFacts = {
  tool: { id: "unknown", major: 0, version: "", digest: "" },
  driver: "unknown",
  user: "unknown",
  actor: "",
  roles: [],
  folder: { path: "", dev: "0", ino: "0", birthNs: "0" },
  effects: 0,
  approval: "always",
  ruled: true,
  layer: "",
  answer: "",
}

const areTexts = (value: unknown, keys: readonly string[]): boolean =>
  typeof value === "object" &&
  value !== null &&
  keys.every((key) => typeof (value as Record<string, unknown>)[key] === "string")

const areWhole = (facts: JsonObject): boolean =>
  areTexts(facts, ["driver", "user", "actor", "approval", "layer", "answer"]) &&
  areTexts(facts["tool"], ["id", "version", "digest"]) &&
  areTexts(facts["folder"], ["path", "dev", "ino", "birthNs"]) &&
  Array.isArray(facts["roles"]) &&
  (facts["bound"] === undefined || areTexts(facts["bound"], ["driver", "input", "profile"])) &&
  (facts["address"] === undefined || typeof facts["address"] === "string") &&
  (facts["fires"] === undefined ||
    (Array.isArray(facts["fires"]) && facts["fires"].every((event) => typeof event === "string"))) &&
  typeof facts["effects"] === "number"

/** Can nobody say any more what was held? Then it cannot be approved, only thrown away. */
export const isDamaged = ({ facts }: Pick<HeldCall, "facts">): boolean => !areWhole(facts)

export const toJson = (facts: HeldFacts): JsonObject => facts as unknown as JsonObject
/** The store is in the data folder, which is this user's alone: what is in it was written by `hold`, or was damaged. */
export const factsOf = ({ facts }: Pick<HeldCall, "facts">): HeldFacts =>
  areWhole(facts) ? (facts as unknown as HeldFacts) : unknownFacts
export const toolName = ({ tool }: HeldFacts): string => `${tool.id}@${tool.major}`
export const expiresOf = ({ at, holdMs }: Pick<HeldCall, "at" | "holdMs">): string =>
  new Date(at.wallMs + holdMs).toISOString()
