/** A login that a call needs, by way of the client: it opens the page, and the call is made. */
import { join } from "node:path"
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client"
import { expect, it } from "vitest"
import { BrowsingPerson, startOidc } from "../support/servers/oidc.ts"
import { openDaemonWorld } from "./daemon-world.ts"

const fixtures = join(import.meta.dirname, "../../fixtures/logins-oauth")
const configFor = (port: number): string => `
egress: { services: { "id.test": "127.0.0.1:${port}" } }
manifests: ["${fixtures}"]
logins:
  desk: { flow: authorization-code, issuer: "http://id.test", client_id: caisson, scopes: [openid, offline_access] }
`

it.each(["auto", "legacy"] as const)(
  "a %s client opens the page, and the call is made; another's, and one who declines, has none",
  async (mode) => {
    await using server = await startOidc({ name: "id.test" })
    await using world = await openDaemonWorld(configFor(server.port), { manifests: [] })
    const person = new BrowsingPerson({ name: "id.test", port: server.port })
    const pages: string[] = []
    let goes = false
    const open = async (user: string, url: boolean): Promise<Client> => {
      const made = await world.daemon.host.tokens.issue({ user, workspaces: [world.workspace] })
      if (!made.ok) throw new Error(made.error.message)
      const client = new Client(
        { name: "test", version: "1" },
        { capabilities: { elicitation: url ? { url: {} } : { form: {} } }, versionNegotiation: { mode } },
      )
      client.setRequestHandler("elicitation/create", async ({ params }) => {
        if (params.mode !== "url") throw new Error("a form was asked for")
        pages.push(params.url)
        if (!goes) return { action: "decline" }
        await person.visit(params.url)
        return { action: "accept" }
      })
      const headers = { authorization: `Bearer ${made.value.token}` }
      const to = new URL(`${world.address}/mcp`)
      await client.connect(new StreamableHTTPClientTransport(to, { requestInit: { headers } }))
      return client
    }
    const alice = await open("alice", true)
    const declined = await alice.callTool({ name: "desk.who", arguments: {} })
    expect(JSON.stringify(declined.content)).toContain("auth_required: nobody signed in")
    goes = true
    const called = await alice.callTool({ name: "desk.who", arguments: {} })
    expect(called.structuredContent).toMatchObject({ value: { sub: "alice" } })
    expect(pages).toHaveLength(2)
    expect(pages.every((page) => URL.canParse(page))).toBe(true)
    // Who cannot be asked so is told how else.
    const bob = await open("bob", false)
    const other = await bob.callTool({ name: "desk.who", arguments: {} })
    expect(JSON.stringify(other.content)).toContain("caisson login desk")
    expect(pages).toHaveLength(2)
    await Promise.all([alice.close(), bob.close()])
  },
)
