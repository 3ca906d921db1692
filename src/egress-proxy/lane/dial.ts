/**
 * A line to one vetted address.
 *
 * Guarantees: dials exactly that address; tells once, by the deadline, and what was begun and came to nothing is closed.
 */
import { attempt } from "../boundary.ts"
import type { Attempt } from "../connector.ts"
import type { Deadline } from "../deadline.ts"
import { type Handles, handles as found } from "../handles.ts"
import { Line } from "./line.ts"

const handles = found as Handles

export type DialLine = (
  address: string,
  port: number,
  deadline: Deadline,
  then: (line: Line | undefined) => void,
) => void

export const dialLine: DialLine = (address, port, deadline, then) => {
  const handle = handles.newTcp()
  const line = new Line(handle, true)
  let settled = false
  const settle = (connected: boolean): void => {
    if (settled) return
    settled = true
    deadline.off(expire)
    if (!connected) line.destroy()
    then(connected ? line : undefined)
  }
  const expire = (): void => settle(false)
  const request = handles.newConnect()
  request.oncomplete = (status) =>
    attempt(
      () => settle(status === 0),
      () => line.destroy(),
    )
  const failed = address.includes(":")
    ? handle.connect6(request, address, port)
    : handle.connect(request, address, port)
  if (failed === 0) deadline.onExpired(expire)
  else settle(false)
}

export const attemptLine =
  (dial: DialLine): Attempt<Line> =>
  (address, port, deadline) =>
    new Promise((resolve) => dial(address, port, deadline, resolve))
