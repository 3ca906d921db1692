/**
 * `secrets`: what a person does with the vault. A value goes in and never comes out here.
 *
 * Guarantees: a caller sets, sees and removes secrets of its own user alone, and a program's token only sees their names;
 * secrets of others, those for everybody, and
 * new keys are the operator's. What was done, and what was refused, is a line of the audit log. Nothing that is answered or
 * written down holds a value.
 */
import { resolve } from "node:path"
import { shown } from "../../manifest/values/diagnostics.ts"
import { openFolder } from "../../sandbox/folder.ts"
import { type Caller, isAllowedFolder, isOperator, subjectOf } from "../access/caller.ts"
import { isUserId } from "../access/os-user.ts"
import type { HostCore } from "../call/core.ts"
import { workspaceId, workspacePath } from "../data/workspaces.ts"
import { callErrorOf, type Failure } from "../failure.ts"
import type { EventDraft } from "../receipts/event.ts"
import type { AuditLog } from "../receipts/log.ts"
import { isHostsOwn } from "../secrets/captured-tokens.ts"
import { openFileVault } from "../secrets/file-vault.ts"
import { driverScope } from "../secrets/scopes.ts"
import { Secret } from "../secrets/secret.ts"
import type { SecretName, SecretScope, VaultAnswer } from "../secrets/vault.ts"
import type { CallError, SecretListing, SecretOptions, SecretsOfHost } from "../types.ts"

type Told<T> = { readonly ok: true; readonly value: T } | { readonly ok: false; readonly error: CallError }

const told = <T>(answer: VaultAnswer<T>): Told<T> => (answer.ok ? answer : { ok: false, error: callErrorOf(answer) })

const notYours: Failure = {
  ok: false,
  code: "unauthorised",
  message: "a caller keeps secrets of its own user alone",
  details: {},
}

/** What an agent may put in the place of its user's own credentials, the user's next calls would be made with. */
const isPersons = (caller: Caller): boolean => caller.mayApprove || isOperator(caller)
const notAPerson: Failure = {
  ok: false,
  code: "unauthorised",
  message: "a token made for an agent keeps and removes no secrets",
  hint: "ask a person who may approve, or an operator",
  details: {},
}

const driverNamed = (core: HostCore, name: string | undefined): VaultAnswer<string | undefined> => {
  const driver = name === undefined ? undefined : core.registry.driver(name)
  if (name === undefined || driver !== undefined)
    return { ok: true, value: driver === undefined ? undefined : driverScope(core.catalogue, driver) }
  return {
    ok: false,
    code: "not_found",
    message: `there is no driver ${name.slice(0, 120)}`,
    hint: "`caisson drivers` lists what is registered",
    details: {},
  }
}

/** `drivers`: the scope's word for the driver that is named. */
const scopeOf = (
  core: HostCore,
  caller: Caller,
  options: SecretOptions,
  drivers: VaultAnswer<string | undefined> = driverNamed(core, options.driver),
): VaultAnswer<SecretScope> => {
  const own = subjectOf(caller)
  const named = options.user === undefined || options.user === caller.user ? own : options.user
  const user = options.shared === true ? undefined : named
  if (!isOperator(caller) && user !== own) return notYours
  if (!drivers.ok) return drivers
  let workspace: string | undefined
  if (options.workspace !== undefined) {
    const absent = {
      ok: false,
      code: "not_found",
      message: `there is no folder ${options.workspace}`,
      hint: "name a folder that exists",
      details: {},
    } as const
    // Whether others' folders are there is not told: neither by the answer, nor by how long it takes.
    if (!isAllowedFolder(resolve(options.workspace), caller.workspaces)) return absent
    try {
      using folder = openFolder(options.workspace)
      if (!isAllowedFolder(folder.path, caller.workspaces)) return absent
      workspace = workspaceId(core.data, folder.identity)
    } catch {
      return absent
    }
  }
  return {
    ok: true,
    value: {
      ...(user === undefined ? {} : { user }),
      ...(workspace === undefined ? {} : { workspace }),
      ...(drivers.value === undefined ? {} : { driver: drivers.value }),
    },
  }
}

/**
 * The scope that a secret is removed from. A driver that is not registered any more, or lies elsewhere by now, is known by
 * the name that its secret was kept for, where that is one.
 */
const scopeToRemove = async (
  core: HostCore,
  caller: Caller,
  slug: string,
  options: SecretOptions,
): Promise<VaultAnswer<SecretScope>> => {
  const scope = scopeOf(core, caller, options)
  const { driver } = options
  if (driver === undefined || (!scope.ok && scope.code !== "not_found")) return scope
  const names = await core.vault.list()
  if (!names.ok) return names
  const kept = names.value.flatMap(({ slug: own, scope: { driver: word } }) => (own === slug && word ? [word] : []))
  if (scope.ok && scope.value.driver !== undefined && kept.includes(scope.value.driver)) return scope
  const meant = [...new Set(kept)].filter((word) => {
    const [key = ""] = word.split(" ", 1)
    return key === driver || key.replace(/@[^@]*$/, "") === driver
  })
  if (meant.length > 1)
    return {
      ok: false,
      code: "input_invalid",
      message: `there are ${meant.length} drivers named ${driver.slice(0, 120)} that ${shown(slug, 80)} was set for`,
      hint: "name one as `id@major`, and the folder that it comes from with `--manifests`",
      details: { drivers: meant },
    }
  const [word] = meant
  return word === undefined ? scope : scopeOf(core, caller, options, { ok: true, value: word })
}

/** Names and scopes, never values; that it was refused is a line too, and that there was nothing to remove. */
const draftOf = (
  action: `secret.${"set" | "removed" | "rotated"}`,
  caller: Caller,
  answer: VaultAnswer<unknown>,
  named: { readonly slug?: string; readonly scope?: SecretScope } = {},
): EventDraft => {
  const code = !answer.ok
    ? answer.code
    : action === "secret.removed" && answer.value === false
      ? "not_found"
      : undefined
  return {
    actor: { id: isUserId(caller.actor) ? caller.actor : "unknown" },
    action,
    subject: { kind: "secret", ref: named.slug === undefined ? "vault" : shown(named.slug, 80) || "?" },
    metadata: {
      ok: code === undefined,
      ...(code === undefined ? {} : { code }),
      ...(named.scope === undefined ? {} : { scope: { ...named.scope } }),
    },
  }
}

export const secretsOf = (
  core: HostCore,
  log: Pick<AuditLog, "append">,
  callerIn: (options: SecretOptions) => Caller,
): SecretsOfHost => {
  const vault = core.vault
  const scoped = async <T>(
    action: "secret.set" | "secret.removed",
    slug: string,
    options: SecretOptions,
    act: (scope: SecretScope) => Promise<VaultAnswer<T>>,
  ): Promise<Told<T>> => {
    const caller = callerIn(options)
    const scope = isPersons(caller)
      ? await (action === "secret.set" ? scopeOf(core, caller, options) : scopeToRemove(core, caller, slug, options))
      : notAPerson
    const answer = scope.ok ? await act(scope.value) : scope
    await log.append(draftOf(action, caller, answer, { slug, ...(scope.ok ? { scope: scope.value } : {}) }))
    return told(answer)
  }
  return Object.freeze({
    set: (slug: string, value: string, options: SecretOptions = {}) =>
      scoped("secret.set", slug, options, (scope) => vault.set(slug, scope, new Secret(value))),
    remove: (slug: string, options: SecretOptions = {}) =>
      scoped("secret.removed", slug, options, (scope) => vault.delete(slug, scope)),
    list: async (options: SecretOptions = {}) => {
      const caller = callerIn(options)
      const listed = await vault.list()
      if (!listed.ok) return told<readonly SecretListing[]>(listed)
      const isOwn = ({ scope }: SecretName): boolean => isOperator(caller) || scope.user === subjectOf(caller)
      // What the host keeps for itself there is no secret of anybody's.
      const own = listed.value.filter((name) => !isHostsOwn(name.slug) && isOwn(name))
      return {
        ok: true as const,
        value: own.map((name) => {
          const { workspace } = name.scope
          const folder = workspace === undefined ? undefined : workspacePath(core.data, workspace)
          return folder === undefined ? name : { ...name, folder }
        }),
      }
    },
    rotate: async ({ oldKey, ...options }: SecretOptions & { readonly oldKey?: string } = {}) => {
      const caller = callerIn(options)
      const isFile = core.config.vault === undefined
      const keyed = oldKey === undefined || !isFile ? vault : openFileVault(core.data, { oldKey })
      const rotated = isOperator(caller) ? await keyed.rotate() : notYours
      // What homes are encrypted under is in the vault, and is changed with it.
      const answer = rotated.ok ? await core.homes.rotate() : rotated
      await log.append(draftOf("secret.rotated", caller, answer))
      return told<undefined>(answer)
    },
  })
}
