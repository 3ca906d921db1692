/**
 * Dependencies that many starts never need, loaded at their first use.
 *
 * Guarantees: one load per process, synchronous, of this package's own dependency; a missing one throws where it is
 * first needed, as a broken installation should.
 */
import { createRequire } from "node:module"

const load = createRequire(import.meta.url)

/** `T` is the module as `import` would give it. */
export const onDemand = <T extends object>(name: string): (() => T) => {
  let loaded: T | undefined
  return () => (loaded ??= load(name) as T)
}
