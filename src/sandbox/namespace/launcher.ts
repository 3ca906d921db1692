/**
 * The launcher: the process that mounts, starts and watches sandboxes, in namespaces of its own.
 *
 * It runs as pid 1 of a pid namespace with a private mount namespace and an empty network namespace; root in them,
 * and nobody special outside. When it dies the kernel ends every sandbox and drops every mount, so a host that is
 * killed leaves nothing behind. It has no network at all: listeners made for a call are handed to the host.
 * Assumes: started by `launch.ts` with an IPC channel.
 */
import { mkdirSync, readFileSync, writeFileSync } from "node:fs"
import type { Server } from "node:net"
import type { Socket as UdpSocket } from "node:dgram"
import { join } from "node:path"
import type { CommitResult, Denial, Job, SandboxProfile } from "../backend.ts"
import { denialsOf } from "../denials.ts"
import { lookAt } from "../folder.ts"
import { unmetLimit } from "../group-advice.ts"
import {
  layerRefusal,
  type LayerTransactions,
  openLayers,
  type OpenLayers,
  type SealedLayers,
} from "../layers/call-layers.ts"
import { type Architecture, compileFilter } from "../seccomp/bpf.ts"
import { rulesFor } from "../seccomp/rules.ts"
import { closeOnExecFrom, MS, mount, prlimit, RLIMIT, SyscallError } from "../../linux/syscalls.ts"
import { commitHeld, type HoldAnswer, type HoldRequest } from "../layers/held.ts"
import { provePlace } from "../layers/prove-place.ts"
import type { LayerPlace } from "../layers/store.ts"
import { OwnerMaps } from "../layers/overlay.ts"
import { inotifyShare, type Lease, Users } from "../identities.ts"
import { presentMasks } from "../proc-masks.ts"
import type { Blank } from "./bwrap-arguments.ts"
import { findGroups } from "../process/cgroup.ts"
import { deniedAttempts } from "../network/denied-attempts.ts"
import { type ListenerRole, offerListeners, rolesOf, usualRoles } from "../network/listeners.ts"
import { currentNetwork } from "../network/netns.ts"
import type {
  Answer,
  LauncherMessage,
  LauncherOptions,
  PrepareAnswer,
  Refusal,
  RequestMessage,
  RunAnswer,
} from "./protocol.ts"
import { RootViews } from "../roots/root-views.ts"
import { type Seat, takeSeat } from "./seat.ts"
import { sealedRun } from "./sealed-run.ts"

/** Seats kept ready; each is a parked shell of under a megabyte. */
const parkedSeats = 2
/** Seats are refilled when the launcher has been idle this long, so that making one never delays a call. */
const idleMs = 3

interface Sandbox {
  readonly id: number
  readonly seat: Seat
  readonly lease: Lease | undefined
  readonly profile: SandboxProfile
  readonly root: string
  readonly cancel: AbortController
  layers?: OpenLayers
  sealed?: SealedLayers
}

const send = (message: LauncherMessage, handle?: Server | UdpSocket): Promise<void> =>
  new Promise((resolve, reject) => {
    const done = (error: Error | null): void => (error === null || error === undefined ? resolve() : reject(error))
    if (handle === undefined) process.send?.(message, undefined, {}, done)
    else process.send?.(message, handle as Server, {}, done)
  })
/** bubblewrap reads its arguments separated by NUL: one inside a value would be the next option. */
const unfit = (name: string, value: string): boolean => name === "" || /[=\0]/.test(name) || value.includes("\0")
const refuse = (control: string, message: string, fix: string): Refusal => ({ ok: false, control, message, fix })

/** The limits of this launcher's own user namespace, which hold for every sandbox together. */
const limitInotify = (): void => {
  const file = "/proc/sys/user/max_inotify_instances"
  try {
    writeFileSync(file, inotifyShare(readFileSync("/proc/sys/fs/inotify/max_user_instances", "latin1")))
  } catch {
    // A kernel without that setting, or one that is mounted read-only.
  }
}

/** A seat whose listeners, as far as named, the host has already. */
interface OfferedSeat {
  readonly seat: Seat
  readonly number: number
  readonly roles: Set<ListenerRole>
  /** as root: the user that it runs as */
  readonly lease: Lease | undefined
}

class Launcher {
  readonly #privileged: boolean
  readonly #users: Users | undefined
  readonly #ownUsers: boolean
  readonly #base: string
  readonly #blank: Blank
  readonly #layers: LayerPlace
  readonly #home = currentNetwork()
  readonly #groups
  readonly #owners = new OwnerMaps()
  readonly #filters: { withChildren: string; withoutChildren: string }
  readonly #roots: RootViews
  readonly #sandboxes = new Map<number, Sandbox>()
  #parked: Promise<OfferedSeat>[] = []
  #serial = 0

  constructor(options: LauncherOptions) {
    this.#privileged = options.hostUid === 0
    this.#users = options.users === undefined ? undefined : new Users(options.users)
    this.#ownUsers = options.users !== undefined && options.users.count > 1
    if (!this.#privileged) limitInotify()
    this.#base = options.base
    this.#layers = provePlace(options.layers, this.#privileged)
    mount("tmpfs", this.#base, "tmpfs", MS.NOSUID | MS.NODEV | MS.NOEXEC, "size=64m,mode=0755")
    this.#roots = new RootViews(this.#base)
    this.#blank = {
      masks: presentMasks(),
      file: join(this.#base, "empty-file"),
      folder: join(this.#base, "empty-folder"),
    }
    writeFileSync(this.#blank.file, "", { mode: 0o444 })
    mkdirSync(this.#blank.folder, { mode: 0o555 })
    this.#groups = findGroups({
      mountinfo: readFileSync("/proc/self/mountinfo", "utf8"),
      selfCgroup: readFileSync("/proc/self/cgroup", "utf8"),
      hostPid: options.hostPid,
      isDead: (pid, madeAt) => madeAt < options.listedAt && !options.livePids.includes(pid),
    })
    const architecture = process.arch as Architecture
    const filter = (name: string, children: boolean): string => {
      const file = join(this.#base, name)
      writeFileSync(file, compileFilter(rulesFor({ children }), architecture))
      return file
    }
    this.#filters = {
      withChildren: filter("filter-children", true),
      withoutChildren: filter("filter-childless", false),
    }
  }

  facts() {
    return {
      privileged: this.#privileged,
      ownUsers: this.#ownUsers,
      groups: this.#groups.version,
      groupsReason: this.#groups.reason,
      controllers: this.#groups.controllers,
      groupFolders: this.#groups.folders,
      layers: this.#layers,
    }
  }

  park(): void {
    while (this.#parked.length < parkedSeats) {
      const seat = this.#takeSeat(usualRoles)
      seat.catch(() => undefined)
      this.#parked.push(seat)
    }
  }
  async #takeSeat(roles: readonly ListenerRole[]): Promise<OfferedSeat> {
    this.#serial += 1
    const number = this.#serial
    const lease = this.#users?.take()
    const seat = await takeSeat({
      name: `s${number}`,
      groups: this.#groups,
      homeNetwork: this.#home,
      identity: lease?.identity,
      filters: this.#filters,
    }).catch((error: unknown) => {
      lease?.release()
      throw error
    })
    const offered = { seat, number, lease, roles: new Set<ListenerRole>() }
    await this.#offer(offered, roles)
    return offered
  }
  /** Hand over the listeners of these roles that were not handed over yet. */
  async #offer({ seat, number, roles, lease }: OfferedSeat, wanted: readonly ListenerRole[]): Promise<void> {
    try {
      await offerListeners(
        seat.network,
        wanted.filter((role) => !roles.has(role)),
        async (role, handle) => {
          await send({ kind: "listener", seat: number, role }, handle)
          roles.add(role)
        },
      )
    } catch (error) {
      seat.dispose()
      lease?.release()
      throw error
    }
  }
  async #nextSeat(roles: readonly ListenerRole[]): Promise<OfferedSeat> {
    for (;;) {
      const offered = await (this.#parked.shift() ?? this.#takeSeat(roles))
      const { exitCode, signalCode } = offered.seat.process
      if (exitCode === null && signalCode === null) return offered
      offered.seat.dispose()
      offered.lease?.release()
    }
  }

  async prepare(profile: SandboxProfile): Promise<PrepareAnswer | Refusal> {
    const unmet = unmetLimit(profile.required, this.#groups)
    if (unmet !== undefined) return unmet
    const [name] = Object.entries(profile.env).find(([name, value]) => unfit(name, value)) ?? []
    if (name !== undefined)
      return refuse(
        "environment",
        `the variable ${JSON.stringify(name)} cannot be passed as it is`,
        "give it a name without `=`, and no NUL characters",
      )
    let root: string
    try {
      root = this.#roots.get(profile.executables, new Set([...this.#sandboxes.values()].map((waiting) => waiting.root)))
    } catch (error) {
      return refuse(
        "root-view",
        `the program's view of the system could not be built: ${(error as Error).message}`,
        "check that the program and its folder exist and are readable",
      )
    }
    const roles = rolesOf(profile.network)
    const offered = await this.#nextSeat(roles)
    await this.#offer(offered, roles)
    offered.seat.network.watch(profile.network)
    this.#serial += 1
    const id = this.#serial
    const { seat, lease } = offered
    this.#sandboxes.set(id, { id, seat, lease, profile, root, cancel: new AbortController() })
    return { ok: true, sandbox: id, seat: offered.number }
  }

  async run(id: number, job: Job, transactions: LayerTransactions): Promise<RunAnswer | Refusal> {
    const sandbox = this.#known(id)
    const { seat, profile } = sandbox
    if (job.argv.some((word) => word.includes("\0"))) {
      this.discard(id)
      return refuse("arguments", "an argument holds a NUL character, which no program can be given", "remove it")
    }
    try {
      this.#serial += 1
      const layers = await openLayers({
        at: join(this.#base, `c${this.#serial}`),
        place: this.#layers,
        workspace: job.folder ?? lookAt(job.workspace),
        profile,
        identity: sandbox.lease?.identity,
        owners: this.#owners,
        blank: this.#base,
        transactions,
      })
      sandbox.layers = layers
      const run = await sealedRun({
        seat,
        profile,
        job,
        paths: { ...layers.paths, root: sandbox.root, blank: this.#blank },
        identity: sandbox.lease?.identity,
        cancel: sandbox.cancel.signal,
        layers,
      })
      const denied: Denial[] = [
        ...deniedAttempts(seat.network.attempts(), profile.network),
        ...denialsOf(run.ending, profile, { pids: run.usage?.pidsRefused ?? 0 }),
      ]
      const sealed = await layers.seal()
      sandbox.sealed = sealed
      const { cpuMs, peakMemoryBytes } = run.usage ?? {}
      return {
        ok: true,
        ending: run.ending,
        stdout: run.stdout,
        stderr: run.stderr,
        denied,
        usage: {
          wallMs: run.wallMs,
          ...(cpuMs === undefined ? {} : { cpuMs }),
          ...(peakMemoryBytes === undefined ? {} : { peakMemoryBytes }),
        },
        writes: sealed.writes,
        ...(sealed.home === undefined ? {} : { home: sealed.home }),
      }
    } catch (error) {
      this.discard(id)
      const refusal = layerRefusal(error)
      if (refusal !== undefined) return refusal
      throw error
    } finally {
      seat.dispose()
    }
  }

  cancel(id: number): void {
    this.#sandboxes.get(id)?.cancel.abort()
  }

  async keepHome(id: number): Promise<CommitResult> {
    const { sealed } = this.#known(id)
    if (sealed === undefined) throw new Error("a home is kept when the sandbox has ended")
    return sealed.keepHome()
  }

  async commit(id: number): Promise<CommitResult> {
    const { sealed, cancel } = this.#known(id)
    if (sealed === undefined) throw new Error("commit before the sandbox ended")
    try {
      return await sealed.commit(cancel.signal)
    } finally {
      this.discard(id)
    }
  }

  async hold(id: number, request: HoldRequest): Promise<HoldAnswer> {
    const { sealed } = this.#known(id)
    if (sealed === undefined) throw new Error("hold before the sandbox ended")
    const answer = await sealed.hold(request)
    if (answer.ok) this.discard(id)
    return answer
  }

  discard(id: number): void {
    const sandbox = this.#sandboxes.get(id)
    if (sandbox === undefined) return
    this.#sandboxes.delete(id)
    sandbox.seat.dispose()
    sandbox.layers?.discard()
    sandbox.lease?.release()
  }

  #known(id: number): Sandbox {
    const sandbox = this.#sandboxes.get(id)
    if (sandbox === undefined) throw new Error(`there is no sandbox ${id}`)
    return sandbox
  }
}

const answer = async (launcher: Launcher, message: RequestMessage): Promise<Answer> => {
  switch (message.op) {
    case "ping":
      return { ok: true }
    case "prepare":
      return launcher.prepare(message.profile)
    case "run":
      return launcher.run(message.sandbox, message.job, message.transactions)
    case "keep-home":
      return launcher.keepHome(message.sandbox)
    case "commit":
      return launcher.commit(message.sandbox)
    case "hold":
      return launcher.hold(message.sandbox, message.request)
    case "commit-held":
      return commitHeld(message.held, message.txRoot)
    case "cancel":
      launcher.cancel(message.sandbox)
      return { ok: true }
    case "discard":
      launcher.discard(message.sandbox)
      return { ok: true }
  }
}

const main = async (): Promise<void> => {
  // Folders made here are for sandboxes' users to pass through, and tools start with this mask, whoever started us.
  process.umask(0o022)
  closeOnExecFrom(3)
  // Zero would let a core handler of the host (a pipe) have the tool's memory; one byte stops files and pipes alike.
  prlimit(0, RLIMIT.CORE, 1n, 1n)
  const options = JSON.parse(process.argv[2] ?? "{}") as LauncherOptions
  process.env = {}
  let launcher: Launcher
  try {
    launcher = new Launcher(options)
  } catch (error) {
    const code = error instanceof SyscallError ? error.syscall : "launcher"
    await send({
      kind: "failed",
      refusal: refuse("launcher", `${code}: ${(error as Error).message}`, "run `caisson doctor`"),
    })
    process.exit(1)
  }
  let active = 0
  let refill: NodeJS.Timeout | undefined
  process.on("message", (message: RequestMessage) => {
    active += 1
    clearTimeout(refill)
    answer(launcher, message)
      .then(
        (result) => send({ kind: "answer", id: message.id, answer: result }),
        (error: Error) => send({ kind: "broken", id: message.id, message: error.message }),
      )
      .catch(() => undefined)
      .finally(() => {
        active -= 1
        if (active === 0) refill = setTimeout(() => launcher.park(), idleMs)
      })
  })
  // The host is gone or done: with this process go every sandbox, mount and namespace.
  process.on("disconnect", () => process.exit(0))
  launcher.park()
  await send({ kind: "ready", facts: launcher.facts() })
}

await main()
