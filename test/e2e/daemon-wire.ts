/** A client that says what it likes on a connection, byte by byte, and hears all that comes back. */
import { connect, type Socket } from "node:net"

export interface Wire extends Disposable {
  readonly socket: Socket
  say(bytes: string | Buffer): void
  /** what came so far */
  readonly heard: string
  /** the other end has closed */
  readonly closed: Promise<void>
  /** until what came fits */
  until(fits: RegExp): Promise<string>
}

export const openWire = (to: string | { readonly path: string }): Wire => {
  const socket =
    typeof to === "string" ? connect(Number(new URL(to).port), new URL(to).hostname) : connect({ path: to.path })
  const pieces: Buffer[] = []
  const text = (): string => Buffer.concat(pieces).toString("latin1")
  socket.on("data", (piece: Buffer) => pieces.push(piece))
  // Being thrown out is an answer too.
  socket.on("error", () => undefined)
  const closed = new Promise<void>((resolve) => socket.once("close", () => resolve()))
  return {
    socket,
    say: (bytes) => void socket.write(bytes),
    get heard() {
      return text()
    },
    closed,
    until: (fits) =>
      new Promise((resolve, reject) => {
        const look = (): void => {
          if (!fits.test(text())) return
          socket.off("data", look)
          resolve(text())
        }
        socket.on("data", look)
        void closed.then(() => (fits.test(text()) ? resolve(text()) : reject(new Error(`closed after: ${text()}`))))
        look()
      }),
    [Symbol.dispose]: () => void socket.destroy(),
  }
}

/** A whole request as bytes. */
export const requestOf = (
  method: string,
  path: string,
  headers: Readonly<Record<string, string>> = {},
  body?: string,
): string => {
  const all = {
    host: "127.0.0.1",
    ...(body === undefined
      ? {}
      : { "content-type": "application/json", "content-length": String(Buffer.byteLength(body)) }),
    ...headers,
  }
  const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`)
  return `${method} ${path} HTTP/1.1\r\n${lines.join("")}\r\n${body ?? ""}`
}
export const statusesIn = (text: string): number[] =>
  [...text.matchAll(/HTTP\/1\.1 (\d{3})/g)].map(([, status]) => Number(status))
