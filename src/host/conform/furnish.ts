/**
 * The workspace of one example: a folder of its own with what the example says lies there.
 *
 * Guarantees: what is copied lies below the manifest's own folder, links that lead out of it included: a manifest cannot
 * have other files of this machine copied into its tool's sight. Links are copied as links; anything but files, folders
 * and links is refused, and so is more than the limits. The folder is gone when it is disposed.
 * Assumes: nobody changes the manifest's folder meanwhile who may not change the manifest.
 */
import { constants, copyFileSync, lstatSync, mkdirSync, mkdtempSync, readdirSync, readlinkSync } from "node:fs"
import { realpathSync, rmSync, symlinkSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join, relative, sep } from "node:path"
import { exampleBytes, exampleFiles } from "./limits.ts"

interface Furniture {
  /** the manifest */
  readonly file: string
  /** a folder beside it; absent: `example`, where it is there */
  readonly folder?: string
  readonly files: readonly { readonly path: string; readonly content: string }[]
}

interface Workspace extends Disposable {
  readonly folder: string
}

/** What a person has to mend in an example. */
export class ExampleFault extends Error {}

interface Copied {
  files: number
  bytes: number
}

const copyTree = (from: string, to: string, copied: Copied): void => {
  for (const name of readdirSync(from)) {
    const [source, target] = [join(from, name), join(to, name)]
    const facts = lstatSync(source)
    copied.files += 1
    copied.bytes += facts.isFile() ? facts.size : 0
    if (copied.files > exampleFiles || copied.bytes > exampleBytes)
      throw new ExampleFault(`the example's folder holds more than ${exampleFiles} files or ${exampleBytes} bytes`)
    if (facts.isDirectory()) {
      mkdirSync(target)
      copyTree(source, target, copied)
    } else if (facts.isSymbolicLink()) symlinkSync(readlinkSync(source), target)
    else if (facts.isFile()) copyFileSync(source, target, constants.COPYFILE_EXCL)
    else throw new ExampleFault(`${name} in the example's folder is neither file, folder nor link`)
  }
}

/** The real place of something beside a manifest; undefined where there is nothing. */
export const beside = (file: string, name: string): string | undefined => {
  const home = realpathSync(dirname(file))
  let found: string
  try {
    found = realpathSync(join(home, name))
  } catch {
    return undefined
  }
  if (!found.startsWith(home + sep)) throw new ExampleFault(`${name} leads out of the manifest's folder`)
  return found
}

/** `a/b/c` → a, a/b */
const foldersOf = (path: string): readonly string[] => {
  const parts = path.split(sep)
  return parts.slice(1).map((_, at) => parts.slice(0, at + 1).join(sep))
}

const write = (workspace: string, path: string, content: string): void => {
  const target = join(workspace, path)
  // A link that the folder brought along is not followed: not even a folder is made behind one.
  for (const folder of foldersOf(relative(workspace, target)).map((each) => join(workspace, each))) {
    const facts = lstatSync(folder, { throwIfNoEntry: false })
    if (facts === undefined) mkdirSync(folder)
    else if (!facts.isDirectory())
      throw new ExampleFault(`${path} leads through ${relative(workspace, folder)}, which is no folder`)
  }
  rmSync(target, { force: true })
  writeFileSync(target, content, { flag: "wx" })
}

export const furnish = ({ file, folder, files }: Furniture): Workspace => {
  const workspace = realpathSync(mkdtempSync(join(tmpdir(), "caisson-conform-")))
  const dispose = (): void => rmSync(workspace, { recursive: true, force: true })
  try {
    const source = beside(file, folder ?? "example")
    if (source === undefined && folder !== undefined)
      throw new ExampleFault(`there is no folder ${folder} beside the manifest`)
    if (source !== undefined) copyTree(source, workspace, { files: 0, bytes: 0 })
    for (const { path, content } of files) write(workspace, path, content)
    return { folder: workspace, [Symbol.dispose]: dispose }
  } catch (error) {
    dispose()
    throw error
  }
}
