/**
 * Names that scopes of secrets speak in, the same for whoever sets one and for the call that uses it.
 *
 * Guarantees: a driver's holds its id, its major and where its manifest came from, so that a manifest elsewhere that
 * claims the id gets nothing.
 */
import { originOf } from "../data/homes.ts"

/** A registered driver, as far as it has a name. */
interface NamedDriver {
  readonly key: string
  readonly contract: { readonly source: { readonly file: string } }
}

export const driverScope = (catalogue: string, { key, contract }: NamedDriver): string =>
  `${key} ${originOf(catalogue, contract.source.file).join(":")}`
