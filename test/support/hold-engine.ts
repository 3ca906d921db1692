/** Holds a share of the tests' engine until its input ends: the engine then lives as long as the whole run. */
import { acquireEngine } from "./docker-engine.ts"

// An interrupt reaches the whole group; the end of the input follows it, and the engine is then let go of in order.
for (const signal of ["SIGINT", "SIGTERM"] as const) process.on(signal, () => {})
const engine = await acquireEngine()
if (engine.ok) {
  for await (const _ of process.stdin);
  await engine[Symbol.asyncDispose]()
}
