/**
 * Parked processes: some kept ready, each handed to the host piece by piece before a call gets it.
 *
 * Guarantees: a parked process that could not be made, or that died while it waited, never fails a call: the next one is taken, and
 * only a parked process made for the call itself speaks for the machine. What a parked process holds is let go of with it.
 */
import type { Socket as UdpSocket } from "node:dgram"
import type { Server } from "node:net"
import type { Lease, Users } from "../../identities.ts"
import { type ListenerRole, offerListeners, usualRoles } from "../../network/listeners.ts"
import type { Groups } from "../../process/cgroup.ts"
import { PARKED } from "./limits.ts"
import { type ParkedProcess, parkProcess } from "./parked-process.ts"

export type HandOver = (parkedProcess: number, role: ListenerRole, handle: Server | UdpSocket) => Promise<void>

/** A parked process, and which of its listeners the host has already. */
export interface OfferedProcess extends Disposable {
  readonly parkedProcess: ParkedProcess
  readonly number: number
  /** as root: the user that it runs as */
  readonly lease: Lease | undefined
  /** Hand over what was not handed over yet. */
  offer(listeners: readonly ListenerRole[]): Promise<void>
}

export interface ParkedProcessesOptions {
  readonly groups: Groups
  readonly homeNetwork: number
  /** descriptor of the interpreter that waits inside */
  readonly interpreter: number
  readonly users: Users | undefined
  readonly handOver: HandOver
  /** a parked process that the host has handles of is gone, and no call got it */
  readonly gone: (parkedProcess: number) => void
}

export class ParkedProcesses {
  readonly #options: ParkedProcessesOptions
  readonly #parked: Promise<OfferedProcess | undefined>[] = []
  /** What the next call will want is taken to be what the last one wanted: handing a listener over costs both sides. */
  #expected: readonly ListenerRole[] = usualRoles
  #serial = 0
  constructor(options: ParkedProcessesOptions) {
    this.#options = options
  }

  /** Bring the number of ready parked processes up to what is kept. */
  park(): void {
    while (this.#parked.length < PARKED.ready) this.#parked.push(this.#make(this.#expected).catch(() => undefined))
  }

  async take(listeners: readonly ListenerRole[]): Promise<OfferedProcess> {
    this.#expected = listeners
    for (;;) {
      const ready = this.#parked.shift()
      const offered = ready === undefined ? await this.#make(listeners) : await ready
      if (offered === undefined) continue
      if (!offered.parkedProcess.alive()) {
        this.#drop(offered)
        if (ready === undefined) throw new Error("the sandbox process ended before it was given anything to do")
        continue
      }
      try {
        await offered.offer(listeners)
        return offered
      } catch (error) {
        this.#drop(offered)
        throw error
      }
    }
  }

  #drop(offered: OfferedProcess): void {
    offered[Symbol.dispose]()
    this.#options.gone(offered.number)
  }

  async #make(listeners: readonly ListenerRole[]): Promise<OfferedProcess> {
    this.#serial += 1
    const number = this.#serial
    const { groups, homeNetwork, interpreter, users, handOver } = this.#options
    const lease = users?.take()
    let parkedProcess: ParkedProcess
    try {
      const identity = lease?.identity
      parkedProcess = await parkProcess({ name: `s${number}`, groups, homeNetwork, interpreter, identity })
    } catch (error) {
      lease?.release()
      throw error
    }
    const had = new Set<ListenerRole>()
    const offered: OfferedProcess = {
      parkedProcess,
      number,
      lease,
      async offer(wanted) {
        const lacking = wanted.filter((role) => !had.has(role))
        await offerListeners(parkedProcess.network, lacking, async (role, handle) => {
          await handOver(number, role, handle)
          had.add(role)
        })
      },
      [Symbol.dispose]() {
        parkedProcess.dispose()
        lease?.release()
      },
    }
    try {
      await offered.offer(listeners)
      return offered
    } catch (error) {
      this.#drop(offered)
      throw error
    }
  }
}
