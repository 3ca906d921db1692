/**
 * Seats: some kept ready, each handed to the host piece by piece before a call gets it.
 *
 * Guarantees: a seat that could not be made, or that died while it waited, never fails a call: the next one is taken, and
 * only a seat made for the call itself speaks for the machine. What a seat holds is let go of with it.
 */
import type { Socket as UdpSocket } from "node:dgram"
import type { Server, Socket } from "node:net"
import type { Lease, Users } from "../identities.ts"
import { type ListenerRole, offerListeners, usualRoles } from "../network/listeners.ts"
import type { Groups } from "../process/cgroup.ts"
import { SEATS } from "./limits.ts"
import type { HandleRole, StreamRole } from "./protocol.ts"
import { type Seat, takeSeat } from "./seat.ts"

export type HandOver = (seat: number, role: HandleRole, handle: Server | UdpSocket | Socket) => Promise<void>

/** A seat, and which of its handles the host has already. */
export interface OfferedSeat extends Disposable {
  readonly seat: Seat
  readonly number: number
  /** as root: the user that it runs as */
  readonly lease: Lease | undefined
  /** Hand over what was not handed over yet. */
  offer(listeners: readonly ListenerRole[], streams: readonly StreamRole[]): Promise<void>
}

const usualStreams: readonly StreamRole[] = ["stdin", "stdout", "stderr"]

export interface SeatsOptions {
  readonly groups: Groups
  readonly homeNetwork: number
  readonly users: Users | undefined
  readonly handOver: HandOver
  /** a seat that the host has handles of is gone, and no call got it */
  readonly gone: (seat: number) => void
}

/** A pipe as what Node passes between processes as it is; a socket would be read from at the other side at once. */
const pipeOf = (stream: Socket): Socket => (stream as unknown as { readonly _handle: Socket })._handle

export class Seats {
  readonly #options: SeatsOptions
  readonly #parked: Promise<OfferedSeat | undefined>[] = []
  #serial = 0
  constructor(options: SeatsOptions) {
    this.#options = options
  }

  /** Bring the number of ready seats up to what is kept. */
  park(): void {
    while (this.#parked.length < SEATS.parked) this.#parked.push(this.#make(usualRoles).catch(() => undefined))
  }

  async take(listeners: readonly ListenerRole[], streams: readonly StreamRole[]): Promise<OfferedSeat> {
    for (;;) {
      const ready = this.#parked.shift()
      const offered = ready === undefined ? await this.#make(listeners) : await ready
      if (offered === undefined) continue
      const { exitCode, signalCode } = offered.seat.process
      if (exitCode !== null || signalCode !== null) {
        this.#drop(offered)
        if (ready === undefined) throw new Error("the sandbox process ended before it was given anything to do")
        continue
      }
      try {
        await offered.offer(listeners, streams)
        return offered
      } catch (error) {
        this.#drop(offered)
        throw error
      }
    }
  }

  #drop(offered: OfferedSeat): void {
    offered[Symbol.dispose]()
    this.#options.gone(offered.number)
  }

  async #make(listeners: readonly ListenerRole[]): Promise<OfferedSeat> {
    this.#serial += 1
    const number = this.#serial
    const { groups, homeNetwork, users, handOver } = this.#options
    const lease = users?.take()
    let seat: Seat
    try {
      seat = await takeSeat({ name: `s${number}`, groups, homeNetwork, identity: lease?.identity })
    } catch (error) {
      lease?.release()
      throw error
    }
    const had = new Set<HandleRole>()
    const offered: OfferedSeat = {
      seat,
      number,
      lease,
      async offer(wantedListeners, wantedStreams) {
        const lacking = <Role extends HandleRole>(wanted: readonly Role[]): Role[] =>
          wanted.filter((role) => !had.has(role))
        await offerListeners(seat.network, lacking(wantedListeners), async (role, handle) => {
          await handOver(number, role, handle)
          had.add(role)
        })
        for (const role of lacking(wantedStreams)) {
          const stream = seat.streams.get(role) as Socket
          await handOver(number, role, pipeOf(stream))
          stream.destroy()
          had.add(role)
        }
      },
      [Symbol.dispose]() {
        seat.dispose()
        lease?.release()
      },
    }
    try {
      await offered.offer(listeners, usualStreams)
      return offered
    } catch (error) {
      this.#drop(offered)
      throw error
    }
  }
}
