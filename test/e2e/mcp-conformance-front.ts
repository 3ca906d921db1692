/**
 * The suite's servers under names and over TLS, as a driver speaks to servers: it serves plain HTTP on `localhost`, which no
 * driver may name. Each address that its servers tell gets a name in the order of appearance (`mcp.test`, `as1.test`, …), the
 * same in both directions, to the letter; nothing else of a message is touched.
 */
import { once } from "node:events"
import { createServer } from "node:https"
import type { AddressInfo } from "node:net"
import { request } from "undici"
import { createCallAuthority } from "../../src/egress-proxy/tls/authority.ts"

export const names = ["mcp.test", "as1.test", "as2.test"] as const

export interface Front extends AsyncDisposable {
  readonly port: number
  readonly caPem: string
  /** What the suite wrote, as the other side is to read it. */
  named(text: string): string
  /** As a browser opens a page: where it sends one to. */
  open(url: string): Promise<string | undefined>
}

export const openFront = async (server: URL): Promise<Front> => {
  const ports: string[] = [server.port]
  const nameOf = (port: string): string => {
    if (!ports.includes(port)) ports.push(port)
    return names[ports.indexOf(port)] ?? "too-many.test"
  }
  const named = (text: string): string =>
    text
      .replaceAll(/http:\/\/localhost:(\d+)/g, (_all, port: string) => `https://${nameOf(port)}`)
      .replaceAll(/http%3A%2F%2Flocalhost%3A(\d+)/g, (_all, port: string) => `https%3A%2F%2F${nameOf(port)}`)
  const unnamed = (text: string): string =>
    ports.reduce(
      (made, port, index) =>
        made
          .replaceAll(`https://${names[index]}`, `http://localhost:${port}`)
          .replaceAll(`https%3A%2F%2F${names[index]}`, `http%3A%2F%2Flocalhost%3A${port}`),
      text,
    )
  const portOf = (host: string): string | undefined => ports[names.findIndex((name) => name === host)]

  const authority = createCallAuthority({ names: [...names] })
  const { key, cert } = authority.leafFor("mcp.test")
  const front = createServer({ key, cert }, (near, answer) => {
    // Whoever closes here has no more use for what is open there: a stream of events would never end by itself.
    const gone = new AbortController()
    answer.on("close", () => gone.abort())
    void (async () => {
      const parts: Buffer[] = []
      for await (const part of near as AsyncIterable<Buffer>) parts.push(part)
      const { host = "", "content-length": _length, connection: _connection, ...headers } = near.headers
      const port = portOf(host)
      if (port === undefined) return void answer.writeHead(421).end()
      const far = await request(`http://localhost:${port}${unnamed(near.url ?? "/")}`, {
        method: near.method as "GET",
        headers,
        signal: gone.signal,
        ...(parts.length === 0 ? {} : { body: unnamed(Buffer.concat(parts).toString()) }),
      })
      const { "content-length": _far, "transfer-encoding": _coding, ...told } = far.headers
      const translated = Object.entries(told).map(([name, value]) => [name, [value ?? []].flat().map(named)])
      answer.writeHead(far.statusCode, Object.fromEntries(translated) as Record<string, string[]>)
      // A stream is passed on as it comes: the suite writes each event at once.
      for await (const part of far.body as AsyncIterable<Buffer>) answer.write(named(part.toString()))
      answer.end()
    })().catch(() => answer.destroy())
  })
  for (const name of names.slice(1)) front.addContext(name, authority.leafFor(name))
  front.listen(0, "127.0.0.1")
  await once(front, "listening")
  return {
    port: (front.address() as AddressInfo).port,
    caPem: authority.caPem,
    named,
    open: async (url) => {
      const page = new URL(url)
      const { headers, body } = await request(unnamed(page.href).replace("https://", "http://"))
      await body.dump()
      const { location } = headers
      return typeof location === "string" ? named(location) : undefined
    },
    [Symbol.asyncDispose]: async () => {
      front.closeAllConnections()
      front.close()
      await once(front, "close")
    },
  }
}
