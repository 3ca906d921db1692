/** Logins, put together from what a call is made of: its sandbox, proxy, vault and store. */
import { intersectEgress } from "../../manifest/values/egress-entry.ts"
import type { HostCore } from "../call/core.ts"
import { askProof } from "../call/running/outside/ask-proof.ts"
import { createHomeRunner } from "../call/running/outside/home-command.ts"
import { createOwnLogin } from "../call/running/outside/own-login.ts"
import { ownSecrets } from "../call/running/outside/own-secrets.ts"
import { homeFor } from "../call/sealing/home.ts"
import { homeFolder } from "../data/homes.ts"
import { wipeHome } from "../data/wipe-home.ts"
import { kindOf } from "../drivers/kinds.ts"
import { placeOf } from "../drivers/paths.ts"
import { egressBudgets } from "../limits.ts"
import { createLedger } from "../login/ledger.ts"
import { createLogins, type Logins } from "../login/logins.ts"
import { apiKeyMethod } from "../login/methods/api-key.ts"
import { commandMethod } from "../login/methods/command.ts"
import { ownMethod } from "../login/methods/own.ts"
import { pageMethod } from "../login/methods/page.ts"
import { serviceAuthMethod } from "../login/methods/service-auth.ts"
import { oauthMethod, type OAuthOptions } from "../login/oauth/method.ts"
import { resourceMethod } from "../login/oauth/resource-method.ts"
import { settingsIn, writtenFor } from "../login/oauth/settings.ts"
import type { LoginOwner } from "../login/owner.ts"
import type { EventDraft } from "../receipts/event.ts"
import { now } from "../store/instant.ts"

type Core = Pick<
  HostCore,
  | "data"
  | "catalogue"
  | "config"
  | "registry"
  | "vault"
  | "store"
  | "backend"
  | "egressProxy"
  | "availability"
  | "findProgram"
  | "homes"
>

export const assembleLogins = (
  core: Core,
  record: (draft: EventDraft) => Promise<unknown>,
  closing: AbortSignal,
): Logins => {
  const { data, catalogue, config, vault, homes } = core
  const homeOf = ({ driver, workspace, user }: LoginOwner): string =>
    homeFolder(data, catalogue, { driver: driver.key, file: driver.contract.source.file, workspace, user })
  const ledger = createLedger({ data, catalogue, store: core.store, record })
  const oauth: Omit<OAuthOptions, "settingsOf"> = {
    clientSecret: async (slug) => {
      const found = await vault.get(slug, {})
      return found.ok ? found.value : undefined
    },
    refused: ({ driver, key }, why) =>
      void record({
        actor: { id: "unknown" },
        action: "login.callback_refused",
        subject: { kind: "driver", ref: driver.key },
        metadata: { user_id: key.user, workspace_id: key.workspace, reason: why },
      }).catch(() => undefined),
  }
  const runOwn = createOwnLogin(core)
  // What the operator wrote for a driver's login counts before what its manifest says, and a program of the driver's own
  // before the AUTH.md that says where it logs in to.
  const written = oauthMethod({
    ...oauth,
    settingsOf: (driver) => {
      const settings = writtenFor(driver, config.logins)
      return settings?.flow === "program" ? undefined : settings
    },
  })
  const mapped = Object.keys(config.egress.services)
  const describedBy =
    (isServiceAuth: boolean): OAuthOptions["settingsOf"] =>
    ({ contract: { auth } }) => {
      const settings = auth?.login?.cmd === undefined ? settingsIn(auth?.provider, mapped, auth) : undefined
      return (settings?.flow === "service-auth") === isServiceAuth ? settings : undefined
    }
  const described = oauthMethod({ ...oauth, settingsOf: describedBy(false) })
  const approved = serviceAuthMethod({ settingsOf: describedBy(true) })
  const resource = resourceMethod({
    ...oauth,
    settingsOf: (driver) => writtenFor(driver, config.logins),
    resourceOf: ({ contract }) => kindOf(contract)?.resource?.(contract),
    logins: config.mcpLogins,
  })
  return createLogins({
    ledger,
    vault,
    methods: [
      resource,
      written,
      ownMethod(core.availability),
      commandMethod({ refused: oauth.refused }),
      described,
      approved,
      pageMethod,
      apiKeyMethod,
    ],
    run: createHomeRunner(core),
    runOwn: (owner, login, signal) => runOwn({ ...login, driver: owner.driver, home: homeOf(owner) }, signal),
    ask: askProof,
    outlet: ({ driver: { contract } }) => {
      const { allow, services, private: granted, budgets } = config.egress
      return core.egressProxy({
        entries: allow === undefined ? contract.egress : intersectEgress(contract.egress, allow),
        services,
        private: granted,
        budgets: { ...egressBudgets, ...budgets },
        // A login changes something elsewhere: that is what it is for.
        readOnlyHttp: "off",
        substitutions: [],
      })
    },
    secretsOf: (owner) => ownSecrets(core, owner),
    wipe: async (owner, what) => {
      const { auth, setup } = owner.driver.contract
      const paths = (auth?.state.paths ?? []).flatMap((path) => {
        const place = placeOf(path)
        return place.where === "home" ? [place.glob] : []
      })
      const [home, gone] = [homeOf(owner), what === "all" || setup.length === 0 ? "all" : paths] as const
      if (homeFor(homes, owner.driver.contract, home, ["**"]).home?.inMemory !== true) return wipeHome(home, gone)
      const wiped = await homes.wipe(home, gone)
      if (!wiped.ok) throw new Error(wiped.message)
    },
    now,
    closing,
  })
}
