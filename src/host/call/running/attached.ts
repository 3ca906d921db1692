/**
 * A run whose streams somebody takes while it runs: a person at a terminal, or the pipes of a shell.
 *
 * Guarantees: nothing of the output is kept but the end of stderr, and none of it is dropped: a reader that stops stops the
 * program. Secrets that the program was given are overwritten on the way out. Resolves once the run is over and all that
 * was printed is where it belongs, or whoever takes it is gone.
 */
import type { CollectedSandbox, RunningSandbox, Unavailable } from "../../../sandbox/backend.ts"
import { collect, withOutput } from "../../../sandbox/collect.ts"
import { endOf } from "../../../sandbox/process/capture.ts"
import type { Attachment } from "../../attachment.ts"
import { errorTailBytes } from "../../invoke/limits.ts"
import type { BoundSecret } from "../../secrets/bind.ts"
import { streamWithout } from "../../secrets/redact.ts"

/** Its input is somebody's, and what it prints is collected. */
const collected = async (
  running: RunningSandbox,
  { attach }: Attachment,
  outputBytes: number,
): Promise<CollectedSandbox | Unavailable> => {
  const { stdin, stdout, stderr } = running
  using _taken = attach({ stdin, stdout, stderr, signal: (name) => running.signal(name) })
  return await collect(running, { outputBytes })
}

export const attached = async (
  running: RunningSandbox,
  attachment: Attachment,
  secrets: readonly BoundSecret[],
  outputBytes: number,
): Promise<CollectedSandbox | Unavailable> => {
  if (attachment.collects === true) return collected(running, attachment, outputBytes)
  const values = secrets.map(({ value }) => value)
  const stderr = endOf(running.stderr, errorTailBytes)
  const { stdin, terminal } = running
  const taken = attachment.attach({
    stdin,
    stdout: streamWithout(running.stdout, values),
    stderr: streamWithout(running.stderr, values),
    ...(terminal === undefined ? {} : { terminal }),
    signal: (name) => running.signal(name),
  })
  try {
    const exited = await running.exited
    if (!exited.ok) return exited
    await taken.drained
    return withOutput(exited, { stderr, outputBytes: errorTailBytes })
  } finally {
    taken[Symbol.dispose]()
  }
}
