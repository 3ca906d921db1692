/**
 * A bare connection to one vetted address.
 *
 * Guarantees: dials exactly that address; tells once, by the deadline, and what was begun and came to nothing is closed.
 */
import { attempt } from "../connection/boundary.ts"
import type { Attempt } from "./connector.ts"
import type { Deadline } from "../connection/deadline.ts"
import { type Handles, handles as found } from "../connection/handles.ts"
import { BareConnection } from "../connection/bare-connection.ts"

const handles = found as Handles

export type DialBare = (
  address: string,
  port: number,
  deadline: Deadline,
  then: (bare: BareConnection | undefined) => void,
) => void

export const dialBare: DialBare = (address, port, deadline, then) => {
  const handle = handles.newTcp()
  const bare = new BareConnection(handle, true)
  let settled = false
  const settle = (connected: boolean): void => {
    if (settled) return
    settled = true
    deadline.off(expire)
    if (!connected) bare.destroy()
    then(connected ? bare : undefined)
  }
  const expire = (): void => settle(false)
  const request = handles.newConnect()
  request.oncomplete = (status) =>
    attempt(
      () => settle(status === 0),
      () => bare.destroy(),
    )
  const failed = address.includes(":")
    ? handle.connect6(request, address, port)
    : handle.connect(request, address, port)
  if (failed === 0) deadline.onExpired(expire)
  else settle(false)
}

export const attemptBare =
  (dial: DialBare): Attempt<BareConnection> =>
  (address, port, deadline) =>
    new Promise((resolve) => dial(address, port, deadline, resolve))
