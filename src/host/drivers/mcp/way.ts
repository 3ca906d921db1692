/** The transports of a server that runs elsewhere: streamable HTTP, or the older `sse`. */
import type { McpSpec } from "../../../manifest/types.ts"
import { type Closable, loadSdk } from "./client.ts"
import type { OutletFetch } from "./outlet-fetch.ts"

interface Way {
  readonly transport: Closable
  /** tell the server that its session is over, where there is one */
  leave(): Promise<void>
}

export const wayTo = async (
  url: URL,
  { transport }: Pick<McpSpec, "transport">,
  { fetch }: Pick<OutletFetch, "fetch">,
): Promise<Way> => {
  const { SSEClientTransport, StreamableHTTPClientTransport } = await loadSdk()
  if (transport === "sse") return { transport: new SSEClientTransport(url, { fetch }), leave: async () => undefined }
  const streamed = new StreamableHTTPClientTransport(url, { fetch })
  return { transport: streamed, leave: () => streamed.terminateSession() }
}
