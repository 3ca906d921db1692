/**
 * Keys that a person types: for a driver that names secrets and has no login of its own.
 *
 * Guarantees: a key goes from the person into the vault, for this driver, workspace and user alone, and nowhere else.
 * Whether it is taken by the service nobody knows before the first call.
 */
import { Secret } from "../../secrets/secret.ts"
import type { LoginFlow, LoginMethod } from "../flow.ts"

const flow: LoginFlow = {
  method: "api-key",
  byKeys: true,
  needs: ["answer"],
  run: async ({ lacks, person, kept, signal, driver }) => {
    for (const { name, slug } of lacks) {
      const text = `${name} for ${driver.key}`
      const value = await person.answer?.({ id: slug, text, type: "secret" }, signal)
      if (value === undefined || value === "") return { ok: false, why: "cancelled", message: `${name} was not given` }
      const set = await kept.set(slug, new Secret(value))
      if (!set.ok)
        return { ok: false, why: "broken", message: set.message, ...(set.hint === undefined ? {} : { fix: set.hint }) }
    }
    return { ok: true }
  },
}

export const apiKeyMethod: LoginMethod = {
  loginOf: ({ contract: { auth } }) =>
    auth !== undefined && auth.login === undefined && auth.state.env.length > 0 ? flow : undefined,
  refreshOf: () => undefined,
}
