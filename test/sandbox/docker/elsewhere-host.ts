/** Asks the engine at a socket for a sandbox and prints the answer: run in a mount namespace of its own. */
import { createDockerBackend } from "../../../src/sandbox/docker/backend.ts"
import { shapeOf } from "../../../src/sandbox/profile.ts"
import { profileOf } from "./support.ts"

const [socket, data] = process.argv.slice(2)
if (socket === undefined || data === undefined) throw new Error("usage: elsewhere-host SOCKET DATA")
await using backend = createDockerBackend({ data, engine: `unix://${socket}`, rootfs: "host" })
const answer = await backend.prepare(shapeOf(profileOf()))
process.stdout.write(JSON.stringify(answer.ok ? { ok: true } : answer))
if (answer.ok) await answer[Symbol.asyncDispose]()
