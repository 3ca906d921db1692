/** The proof of a login by HTTP, with the secrets of its owner; none of them is in what is told of the answer. */
import { askAsDriver } from "../../../drivers/proof-request.ts"
import { loginLimits } from "../../../login/limits.ts"
import type { LoginParts } from "../../../login/parts.ts"
import { textWithout } from "../../../secrets/redact.ts"
import { sealSecrets, sentTo } from "../../sealing/secrets.ts"

export const askProof: LoginParts["ask"] = async ({ driver: { contract } }, bound, outlet, probe, signal) => {
  const sealed = sealSecrets(bound, contract.egress)
  const hosted = sealed.ok ? sealed.value.hosted : {}
  const asked = await askAsDriver({
    contract,
    probe,
    signal,
    outlet: { connect: (to) => outlet.dial({ ...to, signal }) },
    secret: (name, host) => (Object.hasOwn(hosted, name) ? sentTo(hosted[name], host) : undefined),
    bodyBytes: loginLimits.proofBodyBytes.value,
  })
  if (!asked.ok) return asked
  const values = bound.map(({ value }) => value)
  return { ...asked, body: textWithout(asked.body, values) }
}
