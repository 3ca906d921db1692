/**
 * Approval classes and their order: auto < on-mutate < always (C-6). `policy:NAME` is asked in addition to the rest;
 * on its own it ranks as on-mutate, so that putting it in the place of `always` is a relaxation.
 */
import type { Approval } from "../base-types.ts"

export function parseApproval(text: string): Approval {
  if (text.startsWith("policy:")) return { class: "policy", ref: text.slice("policy:".length) }
  return { class: text === "always" || text === "on-mutate" ? text : "auto" }
}

const RANK = { auto: 0, "on-mutate": 1, policy: 1, always: 2 } as const

export const approvalRank = (approval: Approval): 0 | 1 | 2 => RANK[approval.class]

/** Would replacing `from` by `to` ask less of people? */
export const relaxesApproval = (from: Approval, to: Approval): boolean =>
  approvalRank(to) < approvalRank(from) ||
  (from.class === "policy" && to.class !== "always" && !(to.class === "policy" && to.ref === from.ref))
