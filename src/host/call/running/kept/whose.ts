/**
 * Whose a kept server is: what must be the same of two calls for one to reach what the other left in memory.
 *
 * Guarantees: pure. A server serves one driver, workspace and user, as one manifest, program and profile say, with one set of
 * secret values; in all of them nothing is compared that a caller chooses. A call's time is its own. Secret values are
 * told apart by a digest whose key never leaves this process.
 */
import { createHmac, randomBytes } from "node:crypto"
import { digestOf } from "../../../../manifest/values/digest.ts"
import type { Sealed } from "../../steps.ts"

export interface Whose {
  /** driver, workspace and user: calls of one are made one after the other */
  readonly tuple: string
  /** what the driver is: its manifest and what it runs */
  readonly origin: string
  /** the sandbox that this contract's calls get */
  readonly shape: string
  /** values that it was started with */
  readonly given: string
}

const key = randomBytes(32)

const givenTo = ({ secrets }: Pick<Sealed, "secrets">): string => {
  const hmac = createHmac("sha256", key)
  const rows = secrets.map(({ name, slug, bound, value }) => [name, slug, bound, bound ? value.reveal() : ""] as const)
  return hmac.update(JSON.stringify(rows.toSorted(([a], [b]) => (a < b ? -1 : 1)))).digest("hex")
}

type Called = Pick<Sealed, "driver" | "folder" | "user" | "profile" | "program" | "module" | "secrets">

export const whoseServer = (call: Called, argv: readonly string[]): Whose => {
  const { driver, folder, user, profile, program, module: found } = call
  const { dev, ino, birthNs, path } = folder.identity
  const { wallMs: _own, ...limits } = profile.limits
  const { file, digest } = driver.contract.source
  const { files, ...rest } = profile
  return {
    tuple: digestOf({ driver: driver.key, file, folder: { dev, ino, birthNs, path }, user }),
    origin: digestOf({
      manifest: digest,
      argv: [...argv],
      program: program === undefined ? null : { path: program.path, ...program.identity },
      module: found?.edition ?? null,
    }),
    shape: digestOf({ ...rest, limits, files: Object.keys(files) }),
    given: givenTo(call),
  }
}
