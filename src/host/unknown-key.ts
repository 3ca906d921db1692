/** A key that an object of ours does not have, with the one that was probably meant. */
import { nearest, shown } from "../manifest/values/diagnostics.ts"

interface UnknownKey {
  readonly key: string
  /** after the name of what holds it */
  readonly message: string
  readonly fix: string
}

export const unknownKey = (given: object, known: readonly string[]): UnknownKey | undefined => {
  const key = Object.keys(given).find((name) => !known.includes(name))
  if (key === undefined) return undefined
  const near = nearest(key, known)
  return {
    key: shown(key, 40),
    message: `has the key \`${shown(key, 40)}\`, which is not known${near === undefined ? "" : `; did you mean \`${near}\`?`}`,
    fix: `use ${known.map((name) => `\`${name}\``).join(", ")}`,
  }
}
