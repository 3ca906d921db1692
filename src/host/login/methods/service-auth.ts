/** AIP-50's flow `service-auth`, as one way to log in; see `oauth/service-auth.ts` for what it keeps and what it does not. */
import type { OAuthSettings } from "../../config/oauth-types.ts"
import type { RegisteredDriver } from "../../registry/types.ts"
import type { LoginMethod } from "../flow.ts"
import { guarded, noPlace, slugOfTokens, withAll } from "../oauth/kept-tokens.ts"

interface ServiceAuthOptions {
  /** undefined: the driver has no such login */
  readonly settingsOf: (driver: RegisteredDriver) => OAuthSettings | undefined
}

/** What speaks the protocol is loaded when somebody logs in. */
const protocol = () => import("../oauth/service-auth.ts")

export const serviceAuthMethod = ({ settingsOf }: ServiceAuthOptions): LoginMethod => ({
  loginOf: (driver) => {
    const settings = settingsOf(driver)
    if (settings === undefined) return undefined
    const slug = slugOfTokens(driver, settings)
    const method = "oauth service-auth"
    if (slug === undefined) return { method, needs: ["open"], run: async () => noPlace }
    return {
      method,
      needs: ["open"],
      keeps: [slug, withAll(slug)],
      run: (desk) => guarded(desk, async () => (await protocol()).logIn(desk, settings, slug)),
      revoke: (desk) => guarded(desk, async () => (await protocol()).revoke(desk, settings, slug)),
    }
  },
  refreshOf: (driver) => {
    const settings = settingsOf(driver)
    const slug = settings === undefined ? undefined : slugOfTokens(driver, settings)
    if (settings === undefined || slug === undefined) return undefined
    return {
      method: "oauth service-auth",
      inMemory: slug,
      run: (desk) => guarded(desk, async () => (await protocol()).refresh(desk, settings, slug)),
    }
  },
})
