/** Which programs an image's view is to leave, and how folders of the host's are seen beside them. */
import { join } from "node:path"
import type { Executables } from "../../backend.ts"
import { makeFolders } from "../../exact-modes.ts"
import { showVeiled } from "../../roots/root-view.ts"

const isWithin = (path: string, folder: string): boolean => path === folder || path.startsWith(`${folder}/`)

/** Each `path` or `name=path`; those that come with a folder of the host's are not the image's. */
export const listedPrograms = ({ program, spawn, bundles }: Executables): readonly string[] => {
  const bundled = (path: string): boolean => Object.keys(bundles).some((folder) => isWithin(path, folder))
  return [
    ...(bundled(program) ? [] : [program]),
    ...Object.entries(spawn)
      .filter(([, path]) => !bundled(path))
      .map(([name, path]) => (name.includes("/") ? path : `${name}=${path}`)),
  ]
}

/** Path inside → path on the host, by a name that says nothing of the host. */
export const shownBundles = (dir: string): ((executables: Executables) => Readonly<Record<string, string>>) => {
  const known = new Map<string, string>()
  const veiled = (source: string): string => {
    const before = known.get(source)
    if (before !== undefined) return before
    const within = join(dir, `bundle-${known.size}`)
    const own = join(within, "shown")
    for (const name of ["shown", "workspace", "tmp"]) makeFolders(join(within, name))
    showVeiled(source, own, within)
    known.set(source, own)
    return own
  }
  return ({ bundles }) => Object.fromEntries(Object.entries(bundles).map(([source, at]) => [at, veiled(source)]))
}
