/**
 * Kind http (AIP-31): one request to one fixed service, made by the host itself; no program and no sandbox.
 *
 * Guarantees: what can be wrong with an input is found before anything is sent; the address is the driver's and never
 * the caller's; a call has one idempotency key, the same in all of its attempts and for whoever asks again with its key.
 */
import { parseEgressEntry, intersectEgress } from "../../../manifest/values/egress-entry.ts"
import { secretsIn } from "../../../manifest/templates/template-tree.ts"
import type { DriverContract, HttpCall, HttpSpec } from "../../../manifest/types.ts"
import { scopeOf } from "../../invoke/template-scope.ts"
import type { Answer, DriverAvailability, DriverKindModule, KindCall, KindCommand } from "../kind.ts"
import { serviceNeeds } from "../service-needs.ts"
import { act, type Deed, requestFacts, template } from "./act.ts"
import { bind } from "./bind.ts"
import { originText } from "./exchange.ts"
import { requestOf, type RequestSource } from "./request.ts"

const specOf = ({ id, body }: DriverContract): HttpSpec => {
  if (body.kind !== "http") throw new TypeError(`${id} is of kind ${body.kind}, not http`)
  return body.http
}

/** Stands for a secret where a request is only shown, or tried out. */
const HIDDEN = "***"

/** Of a driver that names one secret and does not say where it goes. */
const bearerOf = ({ auth }: DriverContract, { headers }: HttpCall, named: readonly string[]): string | undefined => {
  const [only, more] = auth?.state.env ?? []
  const isSaid = named.length > 0 || headers.some(({ name }) => name === "authorization")
  return isSaid || more !== undefined ? undefined : only
}

const sourceOf = ({ tool, driver, binding, input }: KindCall): RequestSource => {
  const { http: call } = binding.implementation
  // Without one the entry did not bind, and no call is routed to it.
  if (call === undefined) throw new TypeError(`${driver.key} was bound without a request`)
  const named = [...secretsIn(call)].sort()
  const bearer = bearerOf(driver.contract, call, named)
  const secrets = bearer === undefined ? named : [bearer]
  const scope = scopeOf(tool, binding.implementation)
  return { spec: specOf(driver.contract), call, input, scope, secrets, ...(bearer === undefined ? {} : { bearer }) }
}

const command = (of: KindCall): Answer<KindCommand> => {
  const source = sourceOf(of)
  const { call, spec } = source
  const tried = requestOf(source, { input: of.input, context: of.context, secret: () => HIDDEN, scope: source.scope })
  if (!tried.ok) return tried
  const key = call.idempotencyKeyHeader === undefined ? {} : { idempotencyKey: of.operation }
  const keyed = call.idempotencyKeyHeader !== undefined
  const deed: Deed = {
    of,
    call,
    source: { ...source, ...key },
    repeatable: keyed || of.tool.idempotent || of.tool.mutates.length === 0,
  }
  return {
    ok: true,
    value: {
      run: "hosted",
      shown: [tried.value.method, `${originText(spec.base)}${tried.value.path}`],
      repeatable: keyed,
      act: (desk) => act(deed, desk),
    },
  }
}

/** A service whose own driver does not declare it could never be asked. */
const available = async (driver: DriverContract): Promise<DriverAvailability> => {
  const { host, port } = specOf(driver).base
  const own = parseEgressEntry(`${host}:${port}`)
  if (own.ok && intersectEgress([own.entry], driver.egress).length > 0) return { available: true }
  return {
    available: false,
    code: "tool_unavailable",
    reason: `the driver does not declare the host of its \`base_url\`, ${host}:${port}`,
    fix: `add \`${host}:${port}\` to \`network.egress\` of the driver`,
  }
}

export const httpKind: DriverKindModule = {
  kind: "http",
  remedies: () => ({ write: "name the file in `outputsFiles` of the tool, or its path in `mutates`" }),
  bringsTransforms: true,
  bind,
  reachesFiles: () => false,
  service: (driver) => {
    const { origin, path } = specOf(driver).base
    return `${origin}${path}/`
  },
  unenforceable: () => undefined,
  available,
  needs: ({ driver }) => ({ ok: true, value: serviceNeeds(driver.contract) }),
  command,
  outline: (of) => template(sourceOf(of)),
  evidence: (of) => requestFacts(sourceOf(of)),
}
