/** Is it a module that has to be run to be known? Looks at its name and place alone. */
import { statSync } from "node:fs"
import { join } from "node:path"

/** A file of Python, or the folder of a package. */
export const isModule = (path: string): boolean =>
  path.endsWith(".py") || statSync(join(path, "__init__.py"), { throwIfNoEntry: false }) !== undefined
