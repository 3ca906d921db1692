/**
 * One command of a driver's, run sealed in the driver's own home: what a login, a refresh, a proof and a set-up step are
 * made of. Types alone; `call/running/outside/home-command.ts` makes it.
 *
 * The sandbox has the driver's programs, its home of this driver, workspace and user, the hosts that the driver declares
 * and the operator allows, and an empty folder in the place of the workspace. What the command leaves in the home, of what
 * the driver declares to keep, is durable before the answer.
 */
import type { Duplex } from "node:stream"
import type { RegisteredDriver } from "../registry/types.ts"
import type { BoundSecret } from "../secrets/bind.ts"
import type { LoginKey } from "../store/store.ts"
import type { LentTerminal } from "../person.ts"

export interface HomeCommand {
  readonly driver: RegisteredDriver
  readonly key: LoginKey
  /** as the manifest writes it (C-32) */
  readonly cmd: string
  /** variables beside the driver's own, for `$NAME` in the command; never a secret */
  readonly env?: Readonly<Record<string, string>>
  readonly secrets?: readonly BoundSecret[]
  readonly stdin?: Uint8Array
  /** absent: pipes */
  readonly terminal?: LentTerminal
  readonly timeoutMs: number
  /** what it leaves in the home is kept only where it exited with 0; else whatever became of it */
  readonly keepIfWell?: boolean
  /** hears what it prints, beside a terminal's owner */
  readonly heard?: (bytes: Uint8Array) => void
  /** It runs now, and this is how a port that it listens on inside is reached for as long as it does. */
  readonly began?: (reach: (port: number) => Promise<Duplex | undefined>) => void
}

export type RanInHome =
  | {
      readonly ran: true
      /** null: it did not end by itself */
      readonly exit: number | null
      readonly timedOut: boolean
      /** bounded, and without the secrets that it was given */
      readonly stdout: string
      readonly stderr: string
      /** declared hosts that could not be reached while it ran */
      readonly unreachable: readonly string[]
      /** hosts that it was kept from */
      readonly denied: readonly string[]
    }
  /** `lost`: it ran, and what it left in the home could not be kept */
  | {
      readonly ran: false
      readonly why: "unavailable" | "unsealed" | "unreadable" | "cancelled" | "lost"
      readonly message: string
      readonly fix: string
    }

/** For any driver and owner; a desk has it for its own. */
export type HomeRunner = (command: HomeCommand, signal: AbortSignal) => Promise<RanInHome>

export type RunInHome = (command: Omit<HomeCommand, "driver" | "key">, signal: AbortSignal) => Promise<RanInHome>
