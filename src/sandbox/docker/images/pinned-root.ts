/**
 * The root of an image that a driver names by its digest: a stranger's files, and nothing else of it.
 *
 * Guarantees: nothing is fetched, and no build has a network. Of the image its files alone are taken: its variables, volumes,
 * user, checks and steps for whoever builds on it are left behind. What runs before the program, in the build and in the
 * container, is this host's own Perl with its own libraries. On top is a view in which only the listed programs are left in
 * the folders of programs; other folders of an image that brings its own program stay as they are.
 */
import { join } from "node:path"
import type { Executables } from "../../backend.ts"
import type { UserBlock } from "../../identities.ts"
import type { ContainerRoot, RootMaker } from "../container/container-spec.ts"
import type { Engine, Outcome, Progress } from "../engine/engine.ts"
import { ensurePinned, ensureView } from "./images.ts"
import { listedPrograms, shownBundles } from "./listed-programs.ts"
import { openPortableCode, startsPortable } from "./runner-code.ts"

interface PinnedRootOptions {
  readonly engine: Engine
  readonly image: string
  /** where the bridge's code is put */
  readonly codeDir: string
  readonly users: UserBlock
  readonly progress: Progress
}

const INSIDE = "/usr/lib/caisson"

const unfit = (image: string, outcome: Extract<Outcome<never>, { ok: false }>): Outcome<never> => {
  const { kind, message } = outcome.failure
  return kind === "image" || kind === "unreachable" || kind === "timeout" || kind === "no-space"
    ? outcome
    : { ok: false, failure: { kind: "image", message: `the image ${image} cannot be used: ${message}` } }
}

export const pinnedRoots = ({ engine, image, codeDir, users, progress }: PinnedRootOptions): RootMaker => {
  let code: string | undefined
  const bundles = shownBundles(codeDir)
  const make = async (executables: Executables): Promise<Outcome<ContainerRoot>> => {
    const own = executables.imagePrograms === true
    const parent = await ensurePinned({ engine, image, own, inside: INSIDE, progress })
    if (!parent.ok) return unfit(image, parent)
    const view = await ensureView(engine, parent.value, listedPrograms(executables), users, {
      progress,
      own,
      perl: startsPortable(INSIDE),
    })
    if (!view.ok) return unfit(image, view)
    code ??= openPortableCode(join(codeDir, "code"))
    return { ok: true, value: { image: view.value, folders: bundles(executables), code, portable: true } }
  }
  return { make, forget: () => undefined }
}
