/** The proxy under measurement, a process of its own: one declared tcp:// name in front of the origin's port. */
import { createEgressProxy } from "../../src/egress-proxy/index.ts"

const proxy = await createEgressProxy({
  egress: ["tcp://origin.bench:443"],
  services: { "origin.bench": { address: "127.0.0.1", port: Number(process.argv[2]) } },
  listen: "127.0.0.1:0",
})
process.send?.(proxy.port)
process.once("disconnect", () => process.exit())
