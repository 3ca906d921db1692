/**
 * `secrets`: what a person does with the vault. A value goes in and never comes out here.
 *
 * Guarantees: a caller sets, sees and removes secrets of its own user alone; secrets of others, those for everybody, and
 * new keys are the operator's. Nothing that is answered holds a value.
 */
import { openFolder } from "../../sandbox/folder.ts"
import { type Caller, isOperator } from "../access/caller.ts"
import type { HostCore } from "../call/core.ts"
import { workspaceId } from "../data/workspaces.ts"
import { callErrorOf, type Failure } from "../failure.ts"
import { openFileVault } from "../secrets/file-vault.ts"
import { driverScope } from "../secrets/scopes.ts"
import { Secret } from "../secrets/secret.ts"
import type { SecretName, SecretScope, VaultAnswer } from "../secrets/vault.ts"
import type { CallError, SecretOptions, SecretsOfHost } from "../types.ts"

type Told<T> = { readonly ok: true; readonly value: T } | { readonly ok: false; readonly error: CallError }

const told = <T>(answer: VaultAnswer<T>): Told<T> => (answer.ok ? answer : { ok: false, error: callErrorOf(answer) })

const notYours: Failure = {
  ok: false,
  code: "unauthorised",
  message: "a caller keeps secrets of its own user alone",
  details: {},
}

const scopeOf = (core: HostCore, caller: Caller, options: SecretOptions): VaultAnswer<SecretScope> => {
  const user = options.shared === true ? undefined : (options.user ?? caller.user)
  if (!isOperator(caller) && user !== caller.user) return notYours
  const driver = options.driver === undefined ? undefined : core.registry.driver(options.driver)
  if (options.driver !== undefined && driver === undefined)
    return {
      ok: false,
      code: "not_found",
      message: `there is no driver ${options.driver.slice(0, 120)}`,
      hint: "`caisson drivers` lists what is registered",
      details: {},
    }
  let workspace: string | undefined
  if (options.workspace !== undefined) {
    try {
      using folder = openFolder(options.workspace)
      workspace = workspaceId(core.data, folder.identity)
    } catch {
      return { ok: false, code: "not_found", message: `there is no folder ${options.workspace}`, details: {} }
    }
  }
  return {
    ok: true,
    value: {
      ...(user === undefined ? {} : { user }),
      ...(workspace === undefined ? {} : { workspace }),
      ...(driver === undefined ? {} : { driver: driverScope(core.catalogue, driver) }),
    },
  }
}

export const secretsOf = (core: HostCore, callerIn: (options: SecretOptions) => Caller): SecretsOfHost => {
  const vault = core.vault
  const scoped = async <T>(
    options: SecretOptions,
    act: (scope: SecretScope) => Promise<VaultAnswer<T>>,
  ): Promise<Told<T>> => {
    const scope = scopeOf(core, callerIn(options), options)
    return told(scope.ok ? await act(scope.value) : scope)
  }
  return Object.freeze({
    set: (slug: string, value: string, options: SecretOptions = {}) =>
      scoped(options, (scope) => vault.set(slug, scope, new Secret(value))),
    remove: (slug: string, options: SecretOptions = {}) => scoped(options, (scope) => vault.delete(slug, scope)),
    list: async (options: SecretOptions = {}) => {
      const caller = callerIn(options)
      const listed = await vault.list()
      if (!listed.ok) return told<readonly SecretName[]>(listed)
      const isOwn = ({ scope }: SecretName): boolean => isOperator(caller) || scope.user === caller.user
      return { ok: true as const, value: listed.value.filter(isOwn) }
    },
    rotate: async ({ oldKey, ...options }: SecretOptions & { readonly oldKey?: string } = {}) => {
      if (!isOperator(callerIn(options))) return told<undefined>(notYours)
      return told(await (oldKey === undefined ? vault : openFileVault(core.data, { oldKey })).rotate())
    },
  })
}
