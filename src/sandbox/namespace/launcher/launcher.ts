/**
 * The launcher: the process that mounts, starts and watches sandboxes, in namespaces of its own.
 *
 * It runs as pid 1 of a pid namespace with a private mount namespace and an empty network namespace; root in them,
 * and nobody special outside. When it dies the kernel ends every sandbox and drops every mount, so a host that is
 * killed leaves nothing behind. It has no network at all: listeners made for a call are handed to the host, which opens
 * the program's streams too, so that no byte of theirs passes through here.
 * Assumes: started by `launch.ts` with an IPC channel.
 */
import type { Socket as UdpSocket } from "node:dgram"
import type { Server, Socket } from "node:net"
import { SyscallError } from "../../../linux/libc.ts"
import { closeOnExecFrom, prlimit, RLIMIT } from "../../../linux/processes.ts"
import type { HeldCommit, HeldCommitResult } from "../../layers/held.ts"
import { settle } from "../../layers/settling/settling.ts"
import type { Answer, LauncherMessage, LauncherOptions, RequestMessage } from "./protocol.ts"
import { Sandboxes } from "./sandboxes.ts"

const send = (message: LauncherMessage, handle?: Server | Socket | UdpSocket): Promise<void> =>
  new Promise((resolve, reject) => {
    const done = (error: Error | null): void => (error === null || error === undefined ? resolve() : reject(error))
    if (handle === undefined) process.send?.(message, undefined, {}, done)
    else process.send?.(message, handle as Server, {}, done)
  })

/** Held commits under way, by name. */
const heldCommits = new Map<string, AbortController>()
const commitHeld = async (held: HeldCommit, txRoot: string): Promise<HeldCommitResult> => {
  const cancel = new AbortController()
  heldCommits.set(held.name, cancel)
  try {
    return await settle({ do: "commit-held", held, txRoot }, cancel.signal)
  } finally {
    heldCommits.delete(held.name)
  }
}

const answer = async (sandboxes: Sandboxes, message: RequestMessage): Promise<Answer> => {
  switch (message.op) {
    case "ping":
      return { ok: true }
    case "prepare":
      return sandboxes.prepare(message.shape)
    case "run":
      return sandboxes.run(message, () => void send({ kind: "started", id: message.id }).catch(() => undefined))
    case "glance":
      return sandboxes.glance(message.sandbox)
    case "reach":
      return sandboxes.reach(message.sandbox, message.port)
    case "signal":
      sandboxes.signal(message.sandbox, message.signal)
      return { ok: true }
    case "stop":
      sandboxes.stop(message.sandbox, message.ending)
      return { ok: true }
    case "keep-home":
      return sandboxes.keepHome(message.sandbox)
    case "commit":
      return sandboxes.commit(message.sandbox, message.only)
    case "hold":
      return sandboxes.hold(message.sandbox, message.request)
    case "look":
      return sandboxes.look(message.sandbox, message.bounds)
    case "commit-held":
      return commitHeld(message.held, message.txRoot)
    case "cancel-held":
      heldCommits.get(message.name)?.abort()
      return { ok: true }
    case "discard":
      sandboxes.discard(message.sandbox)
      return { ok: true }
  }
}

const main = async (): Promise<void> => {
  // Folders made here are for sandboxes' users to pass through, and tools start with this mask, whoever started us.
  process.umask(0o022)
  closeOnExecFrom(3)
  // Zero would let a core handler of the host (a pipe) have the tool's memory; one byte stops files and pipes alike.
  prlimit(0, RLIMIT.CORE, 1n, 1n)
  process.env = {}
  // The host is gone or done: with this process go every sandbox, mount and namespace.
  process.on("disconnect", () => process.exit(0))
  const options = await new Promise<LauncherOptions>((resolve) => process.once("message", resolve))
  let sandboxes: Sandboxes
  try {
    sandboxes = new Sandboxes(options, {
      handOver: (parkedProcess, role, handle) => send({ kind: "handle", parkedProcess, role }, handle),
      gone: (parkedProcess) => void send({ kind: "gone", parkedProcess }).catch(() => undefined),
    })
  } catch (error) {
    const code = error instanceof SyscallError ? error.syscall : "launcher"
    const message = `${code}: ${(error as Error).message}`
    await send({ kind: "failed", refusal: { ok: false, control: "launcher", message, fix: "run `caisson doctor`" } })
    process.exit(1)
  }
  process.on("message", (message: RequestMessage) => {
    answer(sandboxes, message)
      .then(
        (result) =>
          "connection" in result && result.connection !== undefined
            ? send({ kind: "answer", id: message.id, answer: { ok: true } }, result.connection)
            : send({ kind: "answer", id: message.id, answer: result }),
        (error: Error) => send({ kind: "broken", id: message.id, message: error.message }),
      )
      .catch(() => undefined)
  })
  sandboxes.park()
  await send({ kind: "ready", facts: sandboxes.facts() })
}

await main()
