/**
 * A host for one command: the daemon that holds the data folder, else one in this process, on the same folder.
 *
 * Guarantees: with manifests or a backend of its own, and under `CAISSON_NO_DAEMON=1`, a command runs in its own process. One
 * that began with the daemon ends with it: nothing is tried again elsewhere.
 */
import { type Client, ProblemError, Unreachable } from "../../client/index.ts"
import { isUserId } from "../../host/access/os-user.ts"
import { dataFolderOf } from "../../host/data/folder.ts"
import type { CallError } from "../../host/types.ts"
import { exitOfError } from "../exit.ts"
import { type HostFlags, withHost } from "../host.ts"
import type { Terminal } from "../terminal.ts"
import { inline } from "../visible.ts"
import type { Caisson } from "./caisson.ts"
import { findDaemon, ofDaemon } from "./daemon.ts"
import { ofOwnHost } from "./own-host.ts"
import { errorOfProblem, errorOfSilence } from "./refusals.ts"

interface ReachFlags extends HostFlags {
  readonly user?: string
  /** what was typed is refused here, whoever would be asked */
  readonly unreadable?: string
  /** files of this process's */
  readonly record?: string
  readonly replay?: string
}

const isOwn = ({ manifests, backend, user, unreadable, record, replay }: ReachFlags): boolean =>
  manifests !== undefined ||
  backend !== undefined ||
  unreadable !== undefined ||
  record !== undefined ||
  replay !== undefined ||
  (user !== undefined && !isUserId(user)) ||
  process.env["CAISSON_NO_DAEMON"] === "1"

export const withCaisson = async (
  flags: ReachFlags,
  terminal: Terminal,
  use: (caisson: Caisson) => Promise<number>,
  failed?: (error: CallError) => void,
): Promise<number> => {
  const tell = (error: CallError): number => {
    failed?.(error)
    terminal.say(`caisson: ${error.code}: ${inline(error.message)}`)
    terminal.say(`fix: ${inline(error.hint)}`)
    return exitOfError(error)
  }
  try {
    const client: Client | undefined = isOwn(flags) ? undefined : await findDaemon(dataFolderOf(undefined))
    if (client !== undefined) return await use(ofDaemon(client))
  } catch (error) {
    if (error instanceof Unreachable) return tell(errorOfSilence(error))
    if (error instanceof ProblemError) return tell(errorOfProblem(error))
    throw error
  }
  return await withHost(flags, terminal, (host) => use(ofOwnHost(host)), failed)
}
