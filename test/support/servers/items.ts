/** A service that is asked with a secret, a driver of kind http for it, and who asked with what. */
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"

export const itemTool = `---
name: item.get
id: item.get
description: d
version: 1.0.0
inputs: { type: object, additionalProperties: false }
outputs: {}
timeout_ms: 60000
---
`
export const itemDriver = `---
name: Items
id: items-http
description: d
version: 1.0.0
kind: http
base_url: http://items.test:8080/v1
default_method: GET
network: { egress: ["items.test:8080"] }
auth: { state: { paths: [], env: [ITEMS_KEY] } }
implements:
  - { tool: item.get, version: ^1.0.0, metadata: { http: { endpoint: /items, headers: { Authorization: "Bearer \${secrets.ITEMS_KEY}" } } } }
---
`

interface ItemsServer extends AsyncDisposable {
  readonly port: number
  /** what each request brought */
  readonly seen: readonly (string | undefined)[]
}

/** Its answers give back what they were sent. */
export const startItems = async (): Promise<ItemsServer> => {
  const seen: (string | undefined)[] = []
  const server = createServer((request, response) => {
    seen.push(request.headers.authorization)
    response.setHeader("content-type", "application/json")
    response.end(JSON.stringify({ you_sent: request.headers.authorization }))
  })
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  return {
    port: (server.address() as AddressInfo).port,
    seen,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}
