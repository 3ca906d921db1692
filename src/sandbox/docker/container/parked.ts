/**
 * A container that runs and waits: started, its network namespace in the host's hands, its bridge parked.
 *
 * Guarantees: it is used for one call and thrown away; it knows nothing of any call yet; disposing kills it by its
 * process even where the engine does not answer, and removes it as soon as the engine does. When the host dies the
 * bridge sees its pipes end and the container ends itself.
 */
import { closeSync } from "node:fs"
import type { SandboxShape } from "../../backend.ts"
import type { Users } from "../../identities.ts"
import { adoptNetwork, type NetworkNamespace } from "../../network/netns.ts"
import { pidfdKill, pidfdOpen } from "../../../linux/processes.ts"
import { type ContainerMounts, openContainerMounts } from "./container-mounts.ts"
import { type ContainerGroup, openContainerGroup } from "./container-group.ts"
import { startsPortable } from "../images/runner-code.ts"
import { type ContainerRoot, containerOptions, insideCode, LABEL } from "./container-spec.ts"
import {
  type ContainerId,
  type Engine,
  type EngineFailure,
  type EngineInfo,
  parseContainerId,
} from "../engine/engine.ts"
import { type WorkFolder, startTime } from "../work-folder.ts"
import { openPipes, type ReadyPipes } from "./pipes.ts"
import type { Removals } from "../engine/removals.ts"

export interface ParkedContainer {
  readonly id: ContainerId
  readonly pid: number
  /** who its processes are */
  readonly user: number
  readonly containerMounts: ContainerMounts
  readonly pipes: ReadyPipes
  readonly group: ContainerGroup
  readonly network: NetworkNamespace
  /** the first process is there and no zombie; once it is gone, so is every other of the container */
  alive(): boolean
  /** not after `dispose` */
  kill(): void
  dispose(): Promise<void>
}
interface ParkOptions {
  readonly engine: Engine
  readonly info: EngineInfo
  readonly removals: Removals
  readonly workFolder: WorkFolder
  readonly shape: SandboxShape
  readonly root: ContainerRoot
  readonly users: Users
  readonly architecture: string
  readonly seccomp: string
  readonly usernsRemap: boolean
  readonly homeNetwork: number
  /** names the data folder in a label */
  readonly data: string
}
export type ParkFailure = {
  readonly ok: false
  readonly failure:
    | EngineFailure
    | { readonly kind: "remote" | "bridge" | "elsewhere" | "cancelled"; readonly message: string }
}

const READY_WITHIN_MS = 30_000

export const park = async (
  options: ParkOptions,
): Promise<{ readonly ok: true; readonly parked: ParkedContainer } | ParkFailure> => {
  const { engine, removals, workFolder, shape } = options
  const { name: number, path } = workFolder.fresh()
  const name = parseContainerId(`caisson-${workFolder.host}-${number}`)
  if (name === undefined) throw new Error("a container name that the engine would refuse")
  const undo: (() => unknown)[] = []
  const giveUp = async <T>(failure: T): Promise<T> => {
    for (const step of undo.reverse()) await step()
    return failure
  }
  const lease = options.users.take()
  undo.push(() => lease.release())
  const user = lease.identity.uid
  const containerMounts = openContainerMounts(path, options.root.code)
  undo.push(() => containerMounts.dispose())
  const pipes = openPipes(containerMounts.pipes, user)
  undo.push(() => pipes.close())
  const created = await engine.create(
    containerOptions(shape, {
      product: options.info.product,
      image: options.root.image,
      perl: options.root.portable === true ? startsPortable(insideCode) : [`${insideCode}/perl`],
      name,
      labels: { [LABEL.host]: workFolder.host, [LABEL.slot]: number, [LABEL.data]: options.data },
      user,
      architecture: options.architecture,
      seccomp: options.seccomp,
      usernsRemap: options.usernsRemap,
      places: { bridge: containerMounts.bridge, ...containerMounts.places, root: options.root.folders },
    }),
  )
  if (!created.ok) {
    // An engine that did not answer may still have made it.
    if (created.failure.kind === "timeout" || created.failure.kind === "unreachable")
      undo.push(() => removals.remove(name))
    return giveUp({ ok: false as const, failure: created.failure })
  }
  const id = created.value
  undo.push(() => removals.remove(id))
  const started = await engine.start(id)
  if (!started.ok) return giveUp({ ok: false as const, failure: started.failure })
  const state = await engine.inspect(id)
  if (!state.ok) return giveUp({ ok: false as const, failure: state.failure })
  const { pid } = state.value
  const born = startTime(pid)
  const group = pid > 0 ? openContainerGroup(pid, shape.limits.memoryBytes) : undefined
  if (!state.value.running || born === undefined || group === undefined) {
    return giveUp({
      ok: false as const,
      failure: {
        kind: "bridge" as const,
        message: `the container ended at once: exit ${state.value.exitCode} ${state.value.error}`,
      },
    })
  }
  if (!group.belongsTo(state.value.id)) {
    return giveUp({
      ok: false as const,
      failure: { kind: "remote" as const, message: "the engine's containers are not processes of this machine" },
    })
  }
  const alive = (): boolean => startTime(pid) === born
  const first = pidfdOpen(pid)
  if (!alive()) {
    closeSync(first)
    return giveUp({ ok: false as const, failure: { kind: "bridge" as const, message: "the container ended at once" } })
  }
  undo.push(() => closeSync(first))
  const ready = await pipes.ready(pid, READY_WITHIN_MS, () => !alive())
  if ("failed" in ready)
    return giveUp({ ok: false as const, failure: { kind: "bridge" as const, message: ready.failed } })
  undo.push(() => ready.close())
  let network: NetworkNamespace
  try {
    containerMounts.detachBridge()
    network = adoptNetwork(options.homeNetwork, `/proc/${pid}/ns/net`)
  } catch (error) {
    return giveUp({
      ok: false as const,
      failure: {
        kind: "bridge" as const,
        message: `the container's network could not be set up: ${(error as Error).message}`,
      },
    })
  }
  const kill = (): void => pidfdKill(first)
  let disposed = false
  const dispose = async (): Promise<void> => {
    if (disposed) return
    disposed = true
    ready.close()
    network.close()
    kill()
    closeSync(first)
    containerMounts.dispose()
    await removals.remove(id)
    lease.release()
  }
  return { ok: true, parked: { id, pid, user, containerMounts, pipes: ready, group, network, alive, kill, dispose } }
}
