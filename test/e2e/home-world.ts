/** The actor fixture with a login's state in its home, and a verb `sleep` that holds still once it has written and said so. */
import { cpSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { fixtureTools } from "./host-world.ts"

const edit = (file: string, from: string, to: string): void => {
  const text = readFileSync(file, "utf8")
  if (!text.includes(from)) throw new Error(`${file} does not say ${from}`)
  writeFileSync(file, text.replace(from, to))
}

/** `paths`: its `auth.state.paths`. Answers the folder of manifests. */
export const stateDriver = (folder: string, paths = "~/.actor/**"): string => {
  const manifests = join(folder, "state-tools")
  cpSync(fixtureTools, manifests, { recursive: true })
  const actor = join(manifests, "actor")
  edit(join(actor, "DRIVER.md"), "\nsandbox:\n", `\nauth: { state: { paths: ["${paths}"] } }\nsandbox:\n`)
  edit(
    join(actor, "act.pl"),
    'put($args[0], "x", ">"); sleep 1 while 1',
    'while (my ($path, $text) = splice(@args, 0, 2)) { put($path, $text, ">") } print "held\\n"; sleep 1 while 1',
  )
  return manifests
}
