/**
 * The words of the escape suite.
 *
 * A case is a hostile program as data, the bait that the host lays out for it, and what must be true afterwards, seen
 * from outside. Programs print `BREACH: …` for what they got away with and `tried` once they got to their end, so that
 * a program that never ran does not count as one that was stopped.
 */
import type { CollectedSandbox } from "../../src/sandbox/backend.ts"
import type { ProfileOverrides } from "../support/sealed.ts"
import type { Ground } from "./ground.ts"

export type Language = "python" | "perl" | "sh"

/** One case's own folder on the host, beside the ground that all cases share. */
export interface Place {
  readonly ground: Ground
  readonly workspace: string
  /** beside the workspace, outside of it: nothing may ever appear or change here */
  readonly outside: string
}

export interface Seen extends Place {
  readonly exited: CollectedSandbox
  readonly stdout: string
  readonly stderr: string
  /** how the commit went, where the case asks for one */
  readonly commit: "committed" | "conflict" | "failed" | "unknown" | "not asked"
}

export interface MachineFacts {
  readonly arch: string
  readonly groups: boolean
  /** User-Mode Linux: it has one entry for system calls, and does not tell where a process waits */
  readonly userMode: boolean
}

export interface EscapeCase {
  /** a sentence: who does not get what */
  readonly name: string
  readonly language: Language
  readonly source: string | ((place: Place) => string)
  readonly profile?: ProfileOverrides | ((place: Place) => ProfileOverrides)
  /** lay out bait of the case's own before the call */
  readonly prepare?: (place: Place) => void | Promise<void>
  /** a process of the host at work while the call runs and settles; `done` aborts when the call is settled */
  readonly meanwhile?: (place: Place, done: AbortSignal) => Promise<void>
  /** what another program does between the end of the call and its commit; a commit is then asked for */
  readonly beforeCommit?: (place: Place) => void
  /** ask for a commit of whatever the program left */
  readonly commit?: true
  /** allowed endings as `endingText` writes them; `exit 0` where not given */
  readonly endings?: readonly string[]
  /** the program is stopped before its end and prints no `tried` */
  readonly cutShort?: true
  /** denials that must be recorded, as `reason target` */
  readonly denied?: readonly string[]
  /** kinds of effects that may be in the write set; none where not given */
  readonly effects?: readonly string[]
  /** how a commit must go, where one is asked for; `failed` where not given */
  readonly commits?: Seen["commit"] | "any"
  /** what went wrong, seen from outside, one line each */
  readonly breaches?: (seen: Seen) => readonly string[] | Promise<readonly string[]>
  /** machines on which the attempt makes sense */
  readonly only?: (facts: MachineFacts) => boolean
}

/** What two backends must agree on. */
export interface Verdict {
  readonly name: string
  readonly ending: string
  readonly denied: readonly string[]
  readonly effects: readonly string[]
  readonly commit: Seen["commit"]
  /** everything that should not have happened; empty: the case held */
  readonly breaches: readonly string[]
}
