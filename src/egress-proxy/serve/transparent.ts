/**
 * A connection that a program made by itself, to an address inside the sandbox's network: the address tells the name.
 *
 * Guarantees: only an address that this sandbox was given for a declared name, or a literal that is itself declared,
 * leads anywhere; every other address is refused, named in the verdict, and the connection reset.
 */
import { parseIp } from "../policy/address.ts"
import { authorityOf, type Authority, parseHost } from "../policy/authority.ts"
import type { ByteSource } from "../connection/byte-source.ts"
import type { SyntheticAddresses } from "../dns/synthetic.ts"
import { abort } from "../connection/endpoint.ts"
import type { Gate } from "../dial/gate.ts"
import type { ReasonCode } from "../policy/reasons.ts"
import { openTunnel } from "./tunnel.ts"

type Binding =
  | { readonly ok: true; readonly target: Authority }
  | { readonly ok: false; readonly code: ReasonCode; readonly target?: Authority }

/** Which authority a local address stands for. */
function bindingOf(gate: Gate, names: SyntheticAddresses, address: string, port: number): Binding {
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

export function serveTransparent(
  gate: Gate,
  names: SyntheticAddresses,
  source: ByteSource,
  fail: (error: unknown) => void,
  listenerPort?: number,
): void {
  const { address = "", port = 0 } = source.local
  const binding = bindingOf(gate, names, address, listenerPort ?? port)
  if (!binding.ok) {
    gate.refuse({
      protocol: "tcp",
      code: binding.code,
      ...(binding.target !== undefined && { target: binding.target }),
    })
    return abort(source)
  }
  const onRefused = async () => abort(source)
  openTunnel({ gate, source, protocol: "tcp", target: binding.target, onOpen: () => {}, onRefused }, fail)
}
