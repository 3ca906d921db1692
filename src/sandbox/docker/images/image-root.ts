/**
 * An image's programs as a container's root: the runner image, the driver's layer on it, and on top a view in which
 * only the listed programs are left.
 *
 * Guarantees: each image is built once and found by content; the bridge's interpreter comes from the same image, so
 * that it fits its libraries. A program that no layer brings is a refusal that names it.
 */
import { renameSync } from "node:fs"
import { join } from "node:path"
import { copyFile, makeFile, makeFolders } from "../../exact-modes.ts"
import type { Executables } from "../../backend.ts"
import type { UserBlock } from "../../identities.ts"
import { type BuilderNetworkOptions, withBuilderNetwork } from "./builder-network.ts"
import { type ContainerRoot, LABEL, type RootMaker } from "../container/container-spec.ts"
import type { ContainerId, Engine, Outcome, Progress } from "../engine/engine.ts"
import { onlyFile } from "../engine/only-file.ts"
import type { Removals } from "../engine/removals.ts"
import { listedPrograms, shownBundles } from "./listed-programs.ts"
import { type DriverLayer, ensureLayer, ensureRunner, ensureView, runnerText } from "./images.ts"

interface ImageRootOptions {
  readonly engine: Engine
  readonly product: "docker" | "podman"
  readonly base?: string
  /** what a set of programs needs on top of the runner image */
  readonly layerFor?: (executables: Executables) => DriverLayer | undefined
  readonly builder: Omit<BuilderNetworkOptions, "engine" | "image" | "serve"> & {
    readonly serve?: BuilderNetworkOptions["serve"]
  }
  /** where the bridge's code is put, one folder per image */
  readonly codeDir: string
  readonly users: UserBlock
  readonly progress: Progress
}

const INTERPRETER = "/usr/bin/perl"

const readInterpreter = async (engine: Engine, id: ContainerId): Promise<Outcome<Buffer>> => {
  const tar = await engine.read(id, INTERPRETER)
  if (!tar.ok) return tar
  const content = await onlyFile(tar.value)
  return content === undefined
    ? { ok: false, failure: { kind: "refused", message: `the runner image's ${INTERPRETER} is not a file` } }
    : { ok: true, value: content }
}

const openCode = async (
  engine: Engine,
  removals: Removals,
  image: string,
  dir: string,
  labels: Record<string, string>,
): Promise<Outcome<string>> => {
  const created = await engine.create({ Image: image, Cmd: ["/"], Labels: labels, HostConfig: { NetworkMode: "none" } })
  if (!created.ok) return created
  try {
    const interpreter = await readInterpreter(engine, created.value)
    if (!interpreter.ok) return interpreter
    makeFolders(dir)
    // A container may be running the one that is there: it is replaced, never written.
    const fresh = join(dir, "perl.new")
    makeFile(fresh, interpreter.value, 0o755)
    renameSync(fresh, join(dir, "perl"))
    copyFile(runnerText("bridge.pl"), join(dir, "bridge.pl"))
    return { ok: true, value: dir }
  } finally {
    await removals.remove(created.value)
  }
}

export const imageRoots = (options: ImageRootOptions): RootMaker => {
  const { engine, progress } = options
  let base: Promise<Outcome<{ runner: string; code: string }>> | undefined
  const openBase = async (): Promise<Outcome<{ runner: string; code: string }>> => {
    const runner = await ensureRunner({
      engine,
      progress,
      ...(options.base === undefined ? {} : { base: options.base }),
    })
    if (!runner.ok) return runner
    const code = await openCode(
      engine,
      options.builder.removals,
      runner.value,
      join(options.codeDir, `code-${runner.value.slice(-12)}`),
      { [LABEL.host]: options.builder.host, [LABEL.slot]: "reader", [LABEL.data]: options.builder.data },
    )
    return code.ok ? { ok: true, value: { runner: runner.value, code: code.value } } : code
  }
  const layered = async (runner: string, executables: Executables): Promise<Outcome<string>> => {
    const layer = options.layerFor?.(executables)
    if (layer === undefined || layer.packages.length === 0) return { ok: true, value: runner }
    const { serve } = options.builder
    const known = await ensureLayer(engine, runner, layer, "find-only", progress)
    if (known.ok || known.failure.kind !== "not-found") return known
    // Podman's builder does not join a container's network, so that nothing would bound what it reaches.
    if (options.product === "podman")
      return {
        ok: false,
        failure: {
          kind: "refused",
          message: `the layer for ${layer.packages.join(", ")} cannot be built under Podman: its builds cannot be held to a registry channel`,
        },
      }
    if (serve === undefined)
      return {
        ok: false,
        failure: {
          kind: "refused",
          message: `the layer for ${layer.packages.join(", ")} is not built, and no registry channel was given to build it with`,
        },
      }
    return withBuilderNetwork({ ...options.builder, engine, image: runner, serve }, (network) =>
      ensureLayer(engine, runner, layer, network, progress),
    )
  }
  const bundles = shownBundles(options.codeDir)
  const make = async (executables: Executables): Promise<Outcome<ContainerRoot>> => {
    base ??= openBase()
    const opened = await base
    if (!opened.ok) {
      base = undefined
      return opened
    }
    const parent = await layered(opened.value.runner, executables)
    if (!parent.ok) return parent
    const view = await ensureView(engine, parent.value, listedPrograms(executables), options.users, { progress })
    if (!view.ok) return view
    return { ok: true, value: { image: view.value, folders: bundles(executables), code: opened.value.code } }
  }
  return {
    make,
    forget() {
      base = undefined
    },
  }
}
