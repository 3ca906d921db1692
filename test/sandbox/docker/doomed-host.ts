/** A host that runs one endless call, to be killed: `node doomed-host.ts SOCKET DATA WORKSPACE MARK`. */
import { createDockerBackend } from "../../../src/sandbox/docker/backend.ts"
import { profileOf } from "./support.ts"

const [socket, data, workspace, mark] = process.argv.slice(2) as [string, string, string, string]
const backend = createDockerBackend({ data, engine: `unix://${socket}`, rootfs: "host", pool: { perProfile: 1 } })
await backend.warm(profileOf())
await backend.warm(profileOf())
const prepared = await backend.prepare(profileOf())
if (!prepared.ok) throw new Error(prepared.message)
await prepared.run(
  { argv: ["/usr/bin/sh", "-c", `echo x > made; sleep ${mark}; echo y >> made`], stdin: new Uint8Array(), workspace },
  new AbortController().signal,
)
