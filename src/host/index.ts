/** `caisson`: the host as a library. What is not exported here is not API. */
import "../manifest/node-version.ts"
export { createHost } from "./host.ts"
export { processCaller, type Caller, type Role } from "./access/caller.ts"
export type { BuiltinArgs, BuiltinFunction } from "./builtin-function.ts"
export { HostStartError } from "./start-error.ts"
export { reasons, type ErrorClass, type Reason, type ReasonCode } from "./reasons.ts"
export { readReceipts, verifyChain, type ChainCode, type ChainVerdict } from "./receipts/verify.ts"
export { conform } from "./conform/conform.ts"
export { writeSetDigest } from "./conform/write-set.ts"
export type { ConformCase, ConformOptions, ConformResult } from "./conform/types.ts"
export type { CallEvent } from "./events.ts"
export type { AttachedEnd, AttachedStreams, Attachment } from "./attachment.ts"
export type { LentTerminal, LoginProgress, PageToOpen, Person, Question } from "./person.ts"
export type { InstallProgress } from "./install/types.ts"
export type { AuditEvent } from "./receipts/event.ts"
export type {
  Availability,
  CallError,
  ApprovalQuestion,
  CallOptions,
  CallProfile,
  CallRequest,
  DecideOptions,
  DriverListing,
  ElicitAnswer,
  ElicitQuestion,
  Envelope,
  HeldApproval,
  HeldApprovalDetail,
  Host,
  HostOptions,
  InstallDriverOptions,
  InstallReport,
  ListOptions,
  LoginDriverOptions,
  LoginReport,
  LogoutDriverOptions,
  LogoutReport,
  AuthListing,
  AuthReport,
  WorkspaceOptions,
  ReportedDenial,
  ReportedEffect,
  ReviewedTool,
  ReviewOptions,
  ReviewReport,
  RoutePhase,
  RunOptions,
  RunRequest,
  PruneReport,
  ReloadReport,
  SecretOptions,
  SecretsOfHost,
  RouteRow,
  ToolListing,
  WhyOptions,
  WhyReport,
} from "./types.ts"
export type { ControlReport, Denial, SandboxBackend, SandboxProfile } from "../sandbox/backend.ts"
export {
  defineAction,
  defineCli,
  defineDriver,
  definePolicy,
  defineRunner,
  defineSandbox,
  defineSecret,
  defineTool,
  ManifestError,
} from "../define/index.ts"
export type * from "../define/types.ts"
export type { Diagnostic, DriverContract, JsonObject, JsonValue, ToolContract } from "../manifest/types.ts"
