/**
 * Definitions in code spell their keys as code does, manifests as manifests do: `timeoutMs` and `timeout_ms` are one key.
 *
 * Guarantees: only keys that are known are read in both spellings, so that what an author named (inputs of a tool,
 * variables, headers) is never touched; a key that is there in both spellings is a fault. Pure.
 */

/** `max_attempts` → `maxAttempts` */
type Camel<S extends string> = S extends `${infer Head}_${infer Tail}` ? `${Head}${Capitalize<Camel<Tail>>}` : S

/** The block, with its keys as a manifest or as code spells them. */
export type Spelled<T> = T | { [K in keyof T as K extends string ? Camel<K> : K]: T[K] }

/** Keys of a block as manifests spell them, with the keys of blocks and lists of blocks below them. */
export type Keys = { readonly [key: string]: Keys | true }

export class SpellingFault extends Error {
  readonly path: string
  constructor(path: string, message: string) {
    super(message)
    this.path = path
  }
}

const camel = (key: string): string => key.replace(/_([a-z0-9])/g, (_, letter: string) => letter.toUpperCase())

const isBlock = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null && !Array.isArray(value)

/** The value with its known keys as a manifest spells them. */
export const asManifest = (value: unknown, keys: Keys, path = ""): unknown => {
  if (Array.isArray(value)) return value.map((each, index) => asManifest(each, keys, `${path}[${index}]`))
  if (!isBlock(value)) return value
  const known = new Map(Object.keys(keys).map((key) => [camel(key), key]))
  const named = Object.entries(value).map(([key, member]): [string, unknown] => {
    const name = known.get(key) ?? key
    const at = path === "" ? key : `${path}.${key}`
    if (name !== key && Object.hasOwn(value, name) && value[name] !== undefined)
      throw new SpellingFault(at, `\`${key}\` and \`${name}\` are the same key`)
    const below = Object.hasOwn(keys, name) ? keys[name] : undefined
    return [name, below === undefined || below === true ? member : asManifest(member, below, at)]
  })
  // No assignment: a key such as `__proto__` stays a key, for the checks to find.
  return Object.fromEntries(named.filter(([, member]) => member !== undefined))
}
