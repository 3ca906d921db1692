/**
 * A parked process that waits for its job, its listeners and streams in our hands.
 *
 * Guarantees: runs one job; what the job does not use, and all of it once the run is over, is closed.
 */
import type { Socket as UdpSocket } from "node:dgram"
import type { Server } from "node:net"
import type { Channel, Job, PreparedSandbox, RunningSandbox, SandboxShape, Unavailable } from "../backend.ts"
import type { Transactions } from "../layers/transactions.ts"
import { type ListenerRole, rolesOf } from "../network/listeners.ts"
import { openTerminal } from "../process/terminal.ts"
import { homeFolderOf, unfitJob } from "../profile.ts"
import { cancelledWhile } from "../set-up.ts"
import { workspaceOf } from "../workspace.ts"
import type { Handle, Handles, Launched } from "./launch.ts"
import { letGo } from "./let-go.ts"
import type { PrepareAnswer } from "./launcher/protocol.ts"
import { openStreams, type ProgramStreams, startRun } from "./running.ts"

const channelOf = ({ network }: SandboxShape, handles: Handles): Channel | "none" => {
  if (network === "none") return "none"
  const server = (role: ListenerRole): Server => handles.get(role) as Server
  const dnsUdp = handles.get("dns-udp") as UdpSocket | undefined
  const dnsTcp = handles.get("dns-tcp") as Server | undefined
  return {
    proxy: server(`proxy-${network.proxyPort}`),
    transparent: new Map(network.transparentPorts.map((port) => [port, server(`port-${port}`)])),
    ...(dnsUdp === undefined ? {} : { dnsUdp }),
    ...(dnsTcp === undefined ? {} : { dnsTcp }),
  }
}
const closeQuietly = (handle: Handle): void => {
  try {
    handle.close()
  } catch {
    // Whoever served it closed it.
  }
}

export class Prepared implements PreparedSandbox {
  readonly ok = true
  readonly channel: Channel | "none"
  readonly #launched: Launched
  readonly #sandbox: number
  readonly #listeners: Handle[] = []
  readonly #streams: ProgramStreams
  readonly #transactions: Transactions
  #used = false
  constructor(
    launched: Launched,
    { sandbox, parkedProcess, streams }: PrepareAnswer,
    shape: SandboxShape,
    transactions: Transactions,
  ) {
    this.#launched = launched
    this.#sandbox = sandbox
    this.#transactions = transactions
    const handles = launched.handles(parkedProcess)
    try {
      this.#streams = openStreams(launched.ownPid, streams, shape.privatePipes)
    } catch (error) {
      handles.forEach(closeQuietly)
      throw error
    }
    const listeners = new Set<string>(rolesOf(shape.network))
    for (const [role, handle] of handles) {
      if (listeners.has(role)) this.#listeners.push(handle)
      else closeQuietly(handle)
    }
    this.channel = channelOf(shape, handles)
  }
  async start(job: Job, cancel: AbortSignal): Promise<RunningSandbox | Unavailable> {
    if (this.#used) throw new Error("a sandbox runs one job")
    this.#used = true
    const unfit = unfitJob(job)
    const workspace = unfit ?? workspaceOf(job)
    if ("ok" in workspace) {
      await this.#release()
      return workspace
    }
    const terminal = job.stdio.kind === "terminal" ? openTerminal(job.stdio) : undefined
    try {
      const transactions = await this.#transactions.forCall(homeFolderOf(job), cancel)
      return await startRun({
        launched: this.#launched,
        request: {
          op: "run",
          sandbox: this.#sandbox,
          job: { ...job, workspace },
          transactions,
          ...(terminal === undefined ? {} : { terminal: terminal.slave }),
        },
        streams: this.#streams,
        terminal,
        cancel,
        ended: () => this.#listeners.forEach(closeQuietly),
      })
    } catch (error) {
      terminal?.close()
      await this.#release()
      if (cancel.aborted) return cancelledWhile("the program was started")
      throw error
    }
  }
  async #release(): Promise<void> {
    for (const handle of this.#listeners) closeQuietly(handle)
    for (const stream of Object.values(this.#streams)) stream.destroy()
    await letGo(this.#launched, this.#sandbox)
  }
  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#used) return
    this.#used = true
    await this.#release()
  }
}
