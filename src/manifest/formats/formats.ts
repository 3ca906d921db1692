/**
 * The formats of tools that the loader reads beside AIP's own, each a plug-in. A format whose tools are no files that can
 * be read (modules that have to be run) says in `caisson import` where its tools come from.
 */
import { basename } from "node:path"
import { aml } from "./aml/aml.ts"
import { aruntime } from "./aruntime/aruntime.ts"
import type { Format } from "./format.ts"

export const formats: readonly Format[] = [aml, aruntime]

/** Whose file is it, by its name alone? */
export const formatOf = (file: string): Format | undefined => {
  const name = basename(file)
  return formats.find((format) => format.owns(name))
}
