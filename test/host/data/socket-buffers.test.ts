/** A tunnel whose other end takes nothing: what the kernel may hold for it, as the kernel itself says. */
import { spawnSync } from "node:child_process"
import { connect } from "node:net"
import { describe, expect, it } from "vitest"
import { createProxyWith } from "../../../src/egress-proxy/proxy.ts"
import { boundBuffers } from "../../../src/host/data/socket-buffers.ts"
import { established, rawClient, startUpstream, tunnel } from "../../egress-proxy/harness.ts"

/** `TCP_NOTSENT_LOWAT` and `SO_RCVBUF` of a descriptor; the kernel doubles the latter for its own accounts. */
function optionsOf(descriptor: number): { readonly unsent: number; readonly receive: number } {
  const program =
    "import socket; s = socket.socket(fileno=3); print(s.getsockopt(6, 25), s.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF) // 2)"
  const { stdout } = spawnSync("python3", ["-c", program], { stdio: ["ignore", "pipe", "inherit", descriptor] })
  const [unsent = -1, receive = -1] = String(stdout).trim().split(" ").map(Number)
  return { unsent, receive }
}

describe.each([
  ["lines", true],
  ["sockets", false],
])("a proxy of the host, on %s", (_, bare) => {
  it("has its listener, and each connection to an upstream, hold little that cannot be sent", async () => {
    await using upstream = await startUpstream((socket) => socket.resume())
    const service = { address: "127.0.0.1", port: upstream.port }
    const seen: { readonly of: string; readonly unsent: number; readonly receive: number }[] = []
    const proxy = await createProxyWith(
      {
        egress: ["tcp://db.good.test:5432", "plain.good.test:80"],
        services: { "db.good.test": service, "plain.good.test": service },
        listen: "127.0.0.1:0",
        onDescriptor(descriptor, of) {
          boundBuffers(descriptor, of)
          seen.push({ of, ...optionsOf(descriptor) })
        },
      },
      { bare },
    )
    const client = rawClient(proxy.port ?? 0)
    client.send(tunnel("db.good.test:5432"))
    await client.sees(established)
    const [listener, dialled] = seen
    expect(listener).toEqual({ of: "listener", unsent: 131_072, receive: 262_144 })
    expect(dialled).toMatchObject({ of: "upstream", unsent: 131_072 })
    client.socket.destroy()
    await proxy.close()
  })

  it("passes traffic where the options cannot be set", async () => {
    await using upstream = await startUpstream((socket) => socket.resume())
    const proxy = await createProxyWith(
      {
        egress: ["tcp://db.good.test:5432"],
        services: { "db.good.test": { address: "127.0.0.1", port: upstream.port } },
        listen: "127.0.0.1:0",
        onDescriptor: () => {
          throw new Error("no such option")
        },
      },
      { bare },
    )
    const client = connect(proxy.port ?? 0, "127.0.0.1").on("error", () => {})
    client.write(tunnel("db.good.test:5432"))
    expect(String(await new Promise((resolve) => client.once("data", resolve)))).toMatch(established)
    client.destroy()
    await proxy.close()
  })
})
