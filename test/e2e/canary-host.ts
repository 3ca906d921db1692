/**
 * A host that uses a secret in each way there is, in a process of its own that can be looked at from outside and crashed. What
 * it is to do comes by stdin, a line of JSON; each answer goes to stdout, a line of JSON; `holds` is said while a program
 * with a secret in its environment runs, until the next line comes.
 */
import { createInterface } from "node:readline"
import { createHost, processCaller } from "../../src/host/index.ts"
import { BrowsingPerson } from "../support/servers/oidc.ts"

interface Orders {
  readonly config: string
  readonly data: string
  readonly workspace: string
  readonly oidcPort: number
  readonly values: Readonly<Record<string, string>>
}

const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]()
const { value: first } = await lines.next()
const { config, data, workspace, oidcPort, values } = JSON.parse(String(first)) as Orders
const tell = (what: string, answer: unknown): void => void process.stdout.write(`${JSON.stringify({ what, answer })}\n`)
const value = (way: string): string => values[way] ?? ""

const host = await createHost({ config, data })
const caller = processCaller("alice")
const heard = (event: { readonly type: string; readonly bytes?: unknown }): void =>
  tell("event", event.bytes instanceof Uint8Array ? Buffer.from(event.bytes).toString() : event)
const call = async (tool: string, input: object, driver?: string): Promise<void> =>
  tell(
    tool,
    await host.call(
      { tool, input: input as never, workspace, ...(driver === undefined ? {} : { driver }) },
      { caller, approved: true, onEvent: heard },
    ),
  )

for (const [slug, way] of [
  ["holder-key", "env"],
  ["sender-token", "substitute"],
  ["items-key", "http"],
  ["notes-key", "mcp"],
  ["sdk-key", "sdk-client"],
  ["keyed-token", "sdk-argument"],
  ["filed-key", "file"],
] as const)
  tell(slug, await host.secrets.set(slug, value(way), { user: "alice" }))
const answers: Readonly<Record<string, string>> = {
  "apikeyed-key": value("api-key"),
  own: value("setup-env"),
  other: value("setup-secret"),
}
const person = { answer: async ({ id }: { readonly id: string }) => answers[id] }
const onProgress = (progress: unknown): void => tell("progress", progress)
tell("api-key", await host.login("apikeyed", { caller, workspace, person, onProgress }))
tell("setup", await host.login("prompted", { caller, workspace, person, onProgress }))
const browser = new BrowsingPerson({ name: "id.test", port: oidcPort })
const visits: Promise<unknown>[] = []
const open = (page: { readonly url: string }): void => void visits.push(browser.visit(page.url))
tell("oauth", await host.login("desk", { caller, workspace, person: { open }, onProgress }))
await Promise.all(visits)

for (const how of ["digest", "plain", "fail"])
  for (const driver of ["apikeyed", "prompted"]) await call("fixture.tell", { how }, driver)
await call("fixture.tell", { how: "digest" }, "filed")
for (let calls = 0; calls < 2; calls++) await call("fixture.tell", { how: "digest" }, "keeper")
await call("fixture.send", { host: "api.test" })
await call("fixture.send", { host: "other.test" })
await call("item.get", {})
await call("notes.act", { verb: "planted" }, "notes-keyed")
await call("sdk.ask", { path: "" }, "sdk-client")
await call("sdk.ask", { path: "/x" }, "sdk-keyed")
await call("desk.who", {})

const stop = new AbortController()
const held = host.call(
  { tool: "fixture.hold", input: {}, workspace },
  {
    caller,
    approved: true,
    signal: stop.signal,
    onEvent: (event) => {
      if (event.type === "output") tell("holds", true)
    },
  },
)
await lines.next()
stop.abort()
tell("fixture.hold", await held)
tell("why", await host.why({ tool: "fixture.hold", workspace }, { caller }))
tell("auth", await host.auth({ caller, workspace }))
tell("secrets", await host.secrets.list())
tell("done", true)
// Waits for its end, with all of them in its memory.
setInterval(() => undefined, 60_000)
