/**
 * The proxy under measurement, a process of its own: one declared tcp:// name in front of the origin's port. With
 * `sockets` as second argument it stands on node:net alone, as it would where Node's bare handles cannot be had.
 */
import { createProxyWith } from "../../src/egress-proxy/proxy.ts"

const [origin, how] = process.argv.slice(2)
const proxy = await createProxyWith(
  {
    egress: ["tcp://origin.bench:443"],
    services: { "origin.bench": { address: "127.0.0.1", port: Number(origin) } },
    listen: "127.0.0.1:0",
  },
  { bare: how !== "sockets" },
)
process.send?.(proxy.port)
process.once("disconnect", () => process.exit())
