/**
 * The connections of a server, each as a source of bytes: on a bare connection where Node has them, else on a socket.
 *
 * Guarantees: until undone, each connection that the server accepts, or is handed, reaches `onClient` once; one that the
 * kernel could not hand over (no descriptor is left, no memory) is nobody's, and ends nothing. The server stays its
 * owner's; its own count of connections knows nothing of bare connections.
 */
import type { Server, Socket } from "node:net"
import { type ByteSource, sourceOfBare, sourceOfSocket } from "./byte-source.ts"
import { attempt } from "./boundary.ts"
import { handles, listeningHandle } from "./handles.ts"
import { BareConnection } from "./bare-connection.ts"

const nothing = (): void => {}

export function acceptFrom(server: Server, bare: boolean, onClient: (source: ByteSource) => void): () => void {
  const onSocket = (socket: Socket): void => {
    socket.allowHalfOpen = true
    socket.setNoDelay(true)
    attempt(
      () => onClient(sourceOfSocket(socket)),
      () => socket.destroy(),
    )
  }
  server.on("connection", onSocket)
  // Without a listener, an error of one `accept` would end the process.
  server.on("error", nothing)
  const handle = bare && handles !== undefined ? listeningHandle(server) : undefined
  const usual = handle?.onconnection
  if (handle !== undefined && usual !== undefined) {
    // Accepted connections inherit it, which saves a system call for each.
    handle.setNoDelay?.(true)
    handle.onconnection = (status, client) => {
      if (status !== 0 || client === undefined) return usual.call(handle, status, client)
      attempt(
        () => onClient(sourceOfBare(new BareConnection(client, false))),
        () => client.close(),
      )
    }
  }
  return () => {
    server.off("connection", onSocket)
    server.off("error", nothing)
    if (handle !== undefined && usual !== undefined) handle.onconnection = usual
  }
}
