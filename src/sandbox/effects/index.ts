/** The write set of a layer, its judgement, and its commit. */
export { beginSnapshot, type Baseline, type Baseline as Snapshot } from "./commit/baseline.ts"
export { commitLayer, type CommitOptions } from "./commit/commit-layer.ts"
export { recoverWorkspace, type Recovery } from "./commit/recover.ts"
export { txRootOf } from "./commit/tx-root.ts"
export { DEFAULT_LAYER_LIMITS, LayerRefused, type LayerLimits, type LayerRefusal } from "./limits.ts"
export { readWriteSet, type ReadOptions } from "./read.ts"
export type { Effect, EffectKind, WriteSet } from "./types.ts"
export { judgeInTurns, judgeWrites, type JudgedEffect, type Judgement, type WritePolicy } from "./judge.ts"
