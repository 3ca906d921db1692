/** What commands ask of a host, wherever it runs: in this process, or in the daemon that holds the data folder. */
import type { ToldDriver, ToldTool, ToldUnloaded, ToldWhy } from "../../host/questions/told.ts"
import type {
  CallOptions,
  CallRequest,
  DecideOptions,
  Envelope,
  GrantsOfHost,
  HeldApproval,
  HeldApprovalDetail,
  Host,
  SecretsOfHost,
  TokensOfHost,
  WhyOptions,
} from "../../host/types.ts"
import type { Diagnostic } from "../../manifest/types.ts"

export interface Catalogue<T> {
  readonly listed: readonly T[]
  /** manifests that did not load, and what is wrong with those and others */
  readonly unloaded: readonly ToldUnloaded[]
  readonly diagnostics: readonly Diagnostic[]
}

export interface Caisson {
  call(
    request: CallRequest,
    options: Pick<CallOptions, "caller" | "signal" | "approved" | "approve" | "onChanges" | "unreadable" | "wait">,
  ): Promise<Envelope>
  why(request: CallRequest, options: WhyOptions): Promise<ToldWhy>
  tools(): Promise<Catalogue<ToldTool>>
  drivers(): Promise<Catalogue<ToldDriver>>
  approvals(): Promise<readonly HeldApproval[]>
  approval(id: string): Promise<HeldApprovalDetail | undefined>
  decide(id: string, answer: Parameters<Host["decide"]>[1], options: DecideOptions): Promise<Envelope>
  readonly tokens: Pick<TokensOfHost, "issue" | "list" | "revoke">
  readonly grants: GrantsOfHost
  readonly secrets: Pick<SecretsOfHost, "set" | "remove" | "list">
}
