/**
 * Run cases in a process of its own: `node run-cases.ts [--source FOLDER] [--only TEXT]… `, one JSON verdict a line.
 *
 * `--source` names the `src` folder whose namespace backend is used, which is how copies with a control taken out are
 * tried. `--only` keeps the cases whose name contains the text.
 */
import { join } from "node:path"
import { fileURLToPath, pathToFileURL } from "node:url"
import { parseArgs } from "node:util"
import type { SandboxBackend } from "../../src/sandbox/backend.ts"
import type { runOnce as collectOnce } from "../../src/sandbox/collect.ts"
import { patience as slowness } from "../support/patience.ts"
import { removeFolder, temporaryFolder } from "../support/sealed.ts"
import { applies, escapeCases } from "./cases/index.ts"
import type { Verdict } from "./escape-case.ts"
import { openGround } from "./ground.ts"
import { runEscapeCase } from "./run-escape-case.ts"

const { values } = parseArgs({ options: { source: { type: "string" }, only: { type: "string", multiple: true } } })
const source = values.source ?? fileURLToPath(new URL("../../src", import.meta.url))
const of = (file: string): Promise<unknown> => import(pathToFileURL(join(source, file)).href)
const { createNamespaceBackend } = (await of("sandbox/namespace/backend.ts")) as {
  createNamespaceBackend: (options: { data: string }) => SandboxBackend
}
const { runOnce } = (await of("sandbox/collect.ts")) as { runOnce: typeof collectOnce }
const wanted = escapeCases.filter(
  (escape) => applies(escape) && (values.only?.some((text) => escape.name.includes(text)) ?? true),
)
const data = temporaryFolder("data")
const ground = await openGround()
let backend = createNamespaceBackend({ data })
/** A case that hangs in a weakened sandbox is a breach, not a reason to wait. */
const patienceMs = 20_000 * slowness
for (const escape of wanted) {
  const broken = (why: string): Verdict => ({
    name: escape.name,
    ending: "broken",
    denied: [],
    effects: [],
    commit: "not asked",
    breaches: [why],
  })
  const timer = new AbortController()
  const patience = new Promise<Verdict>((resolve) => {
    const timeout = setTimeout(() => resolve(broken("did not come back")), patienceMs)
    timer.signal.addEventListener("abort", () => clearTimeout(timeout))
  })
  const verdict = await Promise.race([
    runEscapeCase(backend, escape, ground, runOnce).catch((error: Error) => broken(error.message)),
    patience,
  ])
  timer.abort()
  process.stdout.write(`${JSON.stringify(verdict)}\n`)
  if (verdict.breaches[0] !== "did not come back") continue
  // Its launcher may be stuck; it ends with this process.
  void backend[Symbol.asyncDispose]()
  backend = createNamespaceBackend({ data })
}
await Promise.race([backend[Symbol.asyncDispose](), new Promise((resolve) => setTimeout(resolve, 3000))])
await ground[Symbol.asyncDispose]()
removeFolder(data)
process.exit(0)
