/** `caisson/sandbox`: a policy and a command in, what happened out. Knows nothing of tools, drivers or logins. */
import "../manifest/node-version.ts"
export type {
  Captured,
  Channel,
  CommitResult,
  ControlReport,
  Denial,
  Ending,
  Executables,
  ExitedSandbox,
  Job,
  LimitName,
  Limits,
  NetworkChannelSpec,
  PreparedSandbox,
  SandboxBackend,
  SandboxProfile,
  Unavailable,
} from "./backend.ts"
export type { Effect, EffectKind, WriteSet } from "./effects/types.ts"
export { type JudgedEffect, type Judgement, judgeWrites, type WritePolicy } from "./effects/judging/judge.ts"
export { type Glob, matches, parseGlob, parseWorkspacePath, type WorkspacePath } from "../manifest/values/globs.ts"
export { createNamespaceBackend, type NamespaceBackendOptions } from "./namespace/backend.ts"

import type { SandboxBackend } from "./backend.ts"
import type { DockerBackendOptions } from "./docker/backend.ts"
export type { DockerBackendOptions }
/** The engine's client is large: it is loaded only by those who ask for it. */
export const createDockerBackend = async (options: DockerBackendOptions): Promise<SandboxBackend> =>
  (await import("./docker/backend.ts")).createDockerBackend(options)
