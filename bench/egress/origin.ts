/**
 * The far end of every measurement: `N\n` gets N bytes and an end; any other first line makes it an echo.
 * A process of its own; tells its port over IPC.
 */
import { createServer } from "node:net"

const block = Buffer.alloc(1024 * 1024, "x")
const server = createServer({ noDelay: true }, (socket) => {
  socket.on("error", () => {})
  socket.once("data", (line) => {
    let left = Number(line.toString("latin1"))
    if (!(left > 0)) {
      socket.write(line)
      socket.on("data", (chunk) => socket.write(chunk))
      return
    }
    const pour = (): void => {
      for (let room = true; room && left > 0; left -= block.length)
        room = socket.write(left < block.length ? block.subarray(0, left) : block)
      if (left <= 0) socket.end()
      else socket.once("drain", pour)
    }
    pour()
  })
})
server.listen(0, "127.0.0.1", 4096, () => {
  const address = server.address()
  process.send?.(typeof address === "object" && address !== null ? address.port : 0)
})
process.once("disconnect", () => process.exit())
