/**
 * A connection that a program made by itself, to an address inside the sandbox's network: the address tells the name.
 *
 * Guarantees: only an address that this sandbox was given for a declared name, or a literal that is itself declared,
 * leads anywhere; every other address is refused, named in the verdict, and the connection reset.
 */
import type { Socket } from "node:net"
import { parseIp } from "./address.ts"
import { authorityOf, type Authority, parseHost } from "./authority.ts"
import { createByteSource } from "./byte-source.ts"
import type { SyntheticAddresses } from "./dns/synthetic.ts"
import type { Gate } from "./gate.ts"
import { abort } from "./passages.ts"
import type { ReasonCode } from "./reasons.ts"
import { serveTunnel } from "./tunnel.ts"

export type Binding =
  | { readonly ok: true; readonly target: Authority }
  | { readonly ok: false; readonly code: ReasonCode; readonly target?: Authority }

/** Which authority a local address stands for. */
export function bindingOf(gate: Gate, names: SyntheticAddresses, address: string, port: number): Binding {
  const plain = address.replace(/^::ffff:(?=[0-9.]+$)/, "").replace(/%.*$/, "")
  const name = names.nameFor(plain)
  const host = name === undefined ? undefined : parseHost(name)
  if (host?.ok === true) return { ok: true, target: authorityOf(host.value, port) }
  const ip = parseIp(plain)
  if (ip === undefined) return { ok: false, code: "no_binding" }
  const target = authorityOf({ kind: "ip", ip }, port)
  if (names.stale(plain)) return { ok: false, code: "stale_binding", target }
  const verdict = gate.decide(target)
  if (verdict.allow) return { ok: true, target }
  const unlisted = verdict.code === "host_not_allowed" || verdict.code === "port_not_allowed"
  return { ok: false, code: unlisted ? "no_binding" : verdict.code, target }
}

export async function serveTransparent(
  gate: Gate,
  names: SyntheticAddresses,
  socket: Socket,
  port: number,
): Promise<void> {
  const binding = bindingOf(gate, names, socket.localAddress ?? "", port)
  if (!binding.ok) {
    gate.refuse({
      protocol: "tcp",
      code: binding.code,
      ...(binding.target !== undefined && { target: binding.target }),
    })
    return abort(socket)
  }
  const onRefused = async () => abort(socket)
  await serveTunnel({
    gate,
    source: createByteSource(socket),
    protocol: "tcp",
    target: binding.target,
    onOpen: () => {},
    onRefused,
  })
}
