/**
 * `caisson secrets set|list|rm|rotate`: the vault.
 *
 * Guarantees: a value comes by a prompt or from stdin, never as an argument, and is never printed.
 */
import { reasons } from "../../host/reasons.ts"
import type { CallError, SecretOptions } from "../../host/types.ts"
import { exit } from "../exit.ts"
import { withHost } from "../host.ts"
import { withCaisson } from "../reach/with-caisson.ts"
import { onInterrupt } from "../interrupt.ts"
import { table } from "../render/table.ts"
import { givenSecret } from "../secret-input.ts"
import { resultJson, type Terminal } from "../terminal.ts"
import { says } from "../texts.ts"
import { inline } from "../visible.ts"

export interface SecretFlags {
  readonly user?: string
  readonly shared?: boolean
  readonly workspace?: string
  readonly driver?: string
  readonly manifests?: readonly string[]
  readonly oldKey?: string
  readonly json?: boolean
}

const optionsOf = ({ user, shared, workspace, driver }: SecretFlags): SecretOptions => ({
  ...(user === undefined ? {} : { user }),
  ...(shared === undefined ? {} : { shared }),
  ...(workspace === undefined ? {} : { workspace }),
  ...(driver === undefined ? {} : { driver }),
})

/** Whose secret it is has nothing to do with who is asked. */
const manifestsOf = ({ manifests }: SecretFlags): Pick<SecretFlags, "manifests"> =>
  manifests === undefined ? {} : { manifests }

const refused = ({ code, message, hint }: CallError, terminal: Terminal): number => {
  terminal.say(`caisson: ${inline(message)}`)
  terminal.say(`hint: ${inline(hint)}`)
  return Object.hasOwn(reasons, code) ? reasons[code as keyof typeof reasons].exit : exit.usage
}

export const set = async (slug: string, flags: SecretFlags, terminal: Terminal): Promise<number> => {
  using interrupt = onInterrupt(() => terminal.say(`caisson: ${says.cancelling}`))
  const given = await givenSecret(`value of ${inline(slug)}`, interrupt.signal)
  if (!given.ok) {
    terminal.say(`caisson: ${given.message}`)
    return exit.usage
  }
  return await withCaisson(manifestsOf(flags), terminal, async ({ secrets }) => {
    const done = await secrets.set(slug, given.value, optionsOf(flags))
    if (!done.ok) return refused(done.error, terminal)
    terminal.say(`${inline(slug)} is set`)
    return exit.ok
  })
}

export const list = (flags: SecretFlags, terminal: Terminal): Promise<number> =>
  withCaisson(manifestsOf(flags), terminal, async ({ secrets }) => {
    const listed = await secrets.list()
    if (!listed.ok) return refused(listed.error, terminal)
    if (flags.json === true || !terminal.isInteractive) resultJson(terminal, listed.value)
    else if (listed.value.length === 0) terminal.say(says.noSecrets)
    else {
      const rows = listed.value.map(({ slug, scope, folder, set: at }) => [
        inline(slug),
        inline(scope.user ?? "everybody"),
        inline(scope.driver?.split(" ", 1)[0] ?? "any"),
        inline(folder ?? scope.workspace ?? "any"),
        inline(at ?? ""),
      ])
      terminal.result(table(["SECRET", "USER", "DRIVER", "WORKSPACE", "SET"], rows, terminal.width))
    }
    return exit.ok
  })

export const remove = (slug: string, flags: SecretFlags, terminal: Terminal): Promise<number> =>
  withCaisson(manifestsOf(flags), terminal, async ({ secrets }) => {
    const done = await secrets.remove(slug, optionsOf(flags))
    if (!done.ok) return refused(done.error, terminal)
    terminal.say(
      done.value ? `${inline(slug)} is gone` : `caisson: there is no secret ${inline(slug)} (${says.listsSecrets})`,
    )
    return done.value ? exit.ok : exit.usage
  })

export const rotate = (flags: SecretFlags, terminal: Terminal): Promise<number> =>
  withHost(flags, terminal, async (host) => {
    const done = await host.secrets.rotate(flags.oldKey === undefined ? {} : { oldKey: flags.oldKey })
    if (!done.ok) return refused(done.error, terminal)
    terminal.say(says.rotated)
    return exit.ok
  })
