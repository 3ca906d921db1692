/** A host that runs one endless call, to be killed: `node doomed-host.ts SOCKET DATA WORKSPACE MARK`. */
import { createDockerBackend } from "../../../src/sandbox/docker/backend.ts"
import { shapeOf } from "../../../src/sandbox/profile.ts"
import { prepareFor } from "../../support/sealed.ts"
import { profileOf } from "./support.ts"

const [socket, data, workspace, mark] = process.argv.slice(2) as [string, string, string, string]
const backend = createDockerBackend({ data, engine: `unix://${socket}`, rootfs: "host", pool: { perProfile: 1 } })
await backend.warm(shapeOf(profileOf()))
await backend.warm(shapeOf(profileOf()))
const prepared = await prepareFor(backend, profileOf())
if (!prepared.ok) throw new Error(prepared.message)
await prepared.run({ argv: ["/usr/bin/sh", "-c", `echo x > made; sleep ${mark}; echo y >> made`], workspace })
