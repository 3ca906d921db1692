/**
 * Each control of the namespace backend as an edit of its source that takes it out, and the cases that must then turn red.
 *
 * The product has no switch that weakens it. A control is switched off in a copy of the source, by replacing exactly the
 * text that makes it; text that is no longer there is an error, so that this table cannot rot in silence.
 * `reddens` holds parts of case names. Where several controls stand behind one another, they are taken out together.
 */
export interface Edit {
  /** below `src` */
  readonly file: string
  readonly find: string
  readonly replace: string
}
export interface Control {
  readonly name: string
  readonly edits: readonly Edit[]
  readonly reddens: readonly string[]
  /** red only for this user: the other is held by file modes or by the kernel as well */
  readonly as?: "root" | "ordinary"
  /** the process that starts the host leaves descriptors open */
  readonly leaky?: true
}

const namespace = (file: string, find: string, replace: string): Edit => ({
  file: `sandbox/namespace/${file}`,
  find,
  replace,
})
const network = (file: string, find: string, replace: string): Edit => ({
  file: `sandbox/network/${file}`,
  find,
  replace,
})
const processes = (file: string, find: string, replace: string): Edit => ({
  file: `sandbox/process/${file}`,
  find,
  replace,
})
const roots = (file: string, find: string, replace: string): Edit => ({ file: `sandbox/roots/${file}`, find, replace })
const layers = (file: string, find: string, replace: string): Edit => ({
  file: `sandbox/layers/${file}`,
  find,
  replace,
})
const seccomp = namespace(
  "launcher/premises.ts",
  "compileFilter(rulesFor({ children }), architecture)",
  "compileFilter([], architecture)",
)
const bwrap = (find: string, replace: string): Edit => namespace("launcher/bwrap-arguments.ts", find, replace)
const noKill = [
  namespace("launcher/waiting-sandbox.ts", "if (first !== undefined && !closed) pidfdKill(first)", ""),
  processes("tree.ts", "if (tries === 2) kill(first)", ""),
]
const noConflicts: readonly Edit[] = [
  {
    file: "sandbox/effects/commit/check.ts",
    find: "const conflict = moved(parentOf(move.path)) || differs(",
    replace: "const conflict = false && differs(",
  },
  { file: "sandbox/effects/commit/apply.ts", find: " || changedInside) throw", replace: ") throw" },
]

export const controls: readonly Control[] = [
  {
    name: "the seccomp filter",
    edits: [seccomp],
    reddens: [
      "AF_VSOCK",
      "but the four that tools need",
      "SCTP",
      "netlink beyond routing",
      "ptrace is refused",
      "by system call is refused",
      "keyrings",
      "bpf, perf",
      "memory only",
      "odd execution domains",
      "clone3 either",
      "seccomp cannot be taken off",
    ],
  },
  {
    name: "the filter, dropped capabilities and the ban on user namespaces together",
    edits: [seccomp, bwrap('"--cap-drop", "ALL",', '"--cap-add", "ALL",'), bwrap('"--disable-userns",', "")],
    reddens: [
      "mounts can be neither made",
      "by unshare",
      "by clone or clone3",
      "the newer mount calls",
      "no other namespace can be joined",
      "is left in the bounding set",
    ],
  },
  {
    name: "death for foreign entry points",
    edits: [
      {
        file: "sandbox/seccomp/bpf.ts",
        find: "    statement(RET_K, RET_KILL_PROCESS),\n    statement(LD_W_ABS, OFFSET_NR),",
        replace: "    statement(RET_K, RET_ALLOW),\n    statement(LD_W_ABS, OFFSET_NR),",
      },
      {
        file: "sandbox/seccomp/bpf.ts",
        find: 'if (architecture === "x64") program.push(',
        replace: "if (false) program.push(",
      },
    ],
    reddens: ["32-bit entry (int 0x80)", "harmless getpid", "x32 table"],
  },
  {
    name: "the filter against child processes",
    edits: [namespace("launcher/premises.ts", "rulesFor({ children })", "rulesFor({ children: true })")],
    reddens: [
      "that forks is ended",
      "uses vfork",
      "uses clone directly",
      "posix_spawn",
      "system()",
      "asks for subprocess",
      "whose thread forks",
    ],
  },
  {
    name: "the network namespace",
    edits: [
      namespace("launch.ts", '"--net", ', ""),
      network(
        "netns.ts",
        "  unshare(CLONE.NEWNET)\n  try {\n    const fd = currentNetwork()\n    return spawn(finish(home, fd))\n  } finally {\n    setns(home, CLONE.NEWNET)\n  }",
        "  return spawn({ fd: home, listenTcp: () => -1, bindUdp: () => -1, watch: () => undefined, attempts: () => ({ named: [], unnamed: 0 }), close: () => undefined })",
      ),
    ],
    // Nothing that would dial the world for real: only the host's loopback is tried.
    reddens: ["TCP listener on loopback", "IPv6 listener", "UDP socket hears", "an abstract Unix socket"],
  },
  {
    name: "the record of attempts",
    edits: [
      network("taps.ts", "    read() {\n      drain()\n", "    read() {\n      return { named: [], unnamed: 0 }\n"),
    ],
    reddens: [
      "IPv6 leads nowhere and is recorded",
      "a raw address is refused",
      "datagrams, QUIC",
      "labels of a DNS name",
      "a name server of the world",
      "on the proxy's port",
      "drops its proxy settings",
    ],
  },
  {
    name: "the record of attempts over IPv6",
    edits: [network("netns.ts", "openTaps(routeIpv6Local())", "openTaps(false)")],
    reddens: ["IPv6 leads nowhere and is recorded"],
  },
  {
    name: "a record without what the program says to itself",
    edits: [
      network("tap-filter.ts", "jump(isEqual, 127, 0, toLoopback.length)", "jump(isEqual, 128, 0, toLoopback.length)"),
    ],
    reddens: ["three thousand dials to itself"],
  },
  {
    name: "attempts without a name as denials",
    edits: [network("denied-attempts.ts", "attempts.unnamed > 0", "false")],
    reddens: ["a flood of dials at ever new targets"],
  },
  {
    name: "noexec on everything writable",
    edits: [
      layers("empty-mounts.ts", "MS.NOSUID | MS.NODEV | MS.NOEXEC", "MS.NOSUID | MS.NODEV"),
      {
        file: "sandbox/layers/overlay.ts",
        find: "layerFlags = MS.NOSUID | MS.NODEV | MS.NOEXEC",
        replace: "layerFlags = MS.NOSUID | MS.NODEV",
      },
    ],
    reddens: [
      "copied to the workspace",
      "lay in the workspace already",
      "that the program wrote is not loaded",
      "a setuid copy",
      "held in memory only",
    ],
  },
  {
    name: "the list of programs",
    edits: [
      roots(
        "root-view.ts",
        'const libraries = ["/usr/lib",',
        'const libraries = ["/usr/bin", "/usr/sbin", "/usr/lib",',
      ),
    ],
    reddens: ["programs that are not listed"],
  },
  {
    name: "a /tmp of the call's own",
    edits: [bwrap('args.push("--bind", slot.tmp, "/tmp")', 'args.push("--bind", "/tmp", "/tmp")')],
    reddens: [
      "everybody on the host may read and write",
      "an agent's socket",
      "leads to a secret of the host",
      "another call's layer",
    ],
  },
  {
    name: "an /etc built from nothing",
    edits: [bwrap('args.push("--proc", "/proc"', 'args.push("--ro-bind", "/etc", "/etc", "--proc", "/proc"')],
    reddens: ["password hashes, homes", "the host's users"],
  },
  {
    name: "settings of the kernel read-only",
    edits: [bwrap(', "--ro-bind", "/proc/sys", "/proc/sys"', "")],
    reddens: ["kernel settings are read-only"],
  },
  {
    name: "the masks over /proc",
    edits: [namespace("launcher/proc-cover.ts", "attachTree(tree, path)", "void tree, path")],
    reddens: ["/proc says nothing"],
  },
  {
    name: "the veil over a driver's files",
    edits: [
      roots("root-view.ts", "showVeiled(source, join(root, inside), root)", "bindReadOnly(source, join(root, inside))"),
    ],
    reddens: ["the mount table does not say"],
  },
  {
    name: "the ipc namespace",
    edits: [bwrap('"--unshare-ipc", ', "")],
    reddens: ["System V shared memory", "a POSIX queue"],
  },
  {
    name: "the pid namespaces",
    edits: [
      bwrap('"--unshare-pid", ', ""),
      namespace("launch.ts", '"--pid", ', ""),
      namespace("launch.ts", '"--fork", "--kill-child=KILL", "--mount-proc", ', ""),
    ],
    // Not the case that signals everybody: it would.
    reddens: ["the host's users, groups, name and processes"],
  },
  {
    name: "the pid namespaces, before a process of the same user",
    edits: [
      bwrap('"--unshare-pid", ', ""),
      namespace("launch.ts", '"--pid", ', ""),
      namespace("launch.ts", '"--fork", "--kill-child=KILL", "--mount-proc", ', ""),
    ],
    reddens: ["cannot be signalled by its number"],
    as: "ordinary",
  },
  {
    name: "a host name of the call's own",
    edits: [bwrap('"--unshare-uts", ', ""), bwrap('"--hostname", "caisson",', "")],
    reddens: ["the host's users, groups, name"],
  },
  {
    name: "an environment built from nothing",
    edits: [
      bwrap('"--clearenv",', ""),
      {
        file: "linux/spawn.ts",
        find: "[...argv, null], [null])",
        replace: "[...argv, null], [...Object.entries(process.env).map(([name, value]) => `${name}=${value}`), null])",
      },
      namespace("launcher/launcher.ts", "  process.env = {}\n", ""),
      namespace("launch.ts", "env: compiledIn(data), cwd", "cwd"),
      { file: "runner/wait.pl", find: "%ENV = map {", replace: "%ENV = %ENV, map {" },
    ],
    reddens: ["no environment in reach"],
  },
  {
    name: "closing inherited descriptors",
    edits: [namespace("launcher/launcher.ts", "  closeOnExecFrom(3)\n", "")],
    reddens: ["no descriptor of the host is open"],
    leaky: true,
  },
  {
    name: "the masks over what the view denies",
    edits: [
      {
        file: "sandbox/layers/view/view-place.ts",
        find: 'if (entry.is === "hidden") cover(',
        replace: 'if (entry.is === "hidden" && false) cover(',
      },
    ],
    reddens: ["paths that the view denies"],
  },
  {
    name: "folders built from what is allowed",
    edits: [
      { file: "sandbox/layers/view/view-plan.ts", find: "build && !takesNew(folder, listed)", replace: "false" },
      { file: "sandbox/layers/view/view.ts", find: "if (appeared !== undefined)", replace: "if (false)" },
    ],
    reddens: ["made outside during the call does not show in a folder of which"],
  },
  {
    name: "the look for hidden files that appeared",
    edits: [{ file: "sandbox/layers/view/view.ts", find: "if (appeared !== undefined)", replace: "if (false)" }],
    reddens: ["made outside during the call in a folder that the call writes in"],
  },
  {
    name: "the layer over the workspace",
    edits: [
      layers(
        "call-mounts.ts",
        "show(workspaceLayer.merged, empty.workspace)",
        "show(empty.workspaceParts.lower, empty.workspace)",
      ),
    ],
    reddens: [
      "git hooks, shell rc files",
      "a fifo of the host in the workspace",
      "a listening socket of the host",
      "set-id and sticky bits",
      "a fifo is never committed",
    ],
  },
  {
    name: "a read-only root and /dev",
    edits: [
      bwrap('args.push("--ro-bind", slot.root, "/")', 'args.push("--bind", slot.root, "/")'),
      bwrap('args.push("--remount-ro", "/dev")', ""),
    ],
    reddens: ["system folders and program files"],
  },
  {
    name: "a read-only root under descriptors",
    edits: [bwrap('args.push("--ro-bind", slot.root, "/")', 'args.push("--bind", slot.root, "/")')],
    reddens: ["through descriptors, O_PATH"],
    as: "ordinary",
  },
  {
    name: "the limit on processes",
    edits: [
      namespace("launcher/waiting-sandbox.ts", "pids: limits.pids + 2", "pids: 4000"),
      namespace("launcher/waiting-sandbox.ts", "BigInt(limits.pids + 1)", "4000n"),
    ],
    reddens: ["a fork bomb stays below", "doubles and leaves its session", "a thread bomb"],
  },
  {
    name: "the limit on memory",
    edits: [
      namespace("launcher/waiting-sandbox.ts", "memoryBytes: limits.memoryBytes,", "memoryBytes: 2 ** 31,"),
      namespace("launcher/wire-limits.ts", "[limit(RLIMIT.DATA, limits.memoryBytes)]", "[]"),
    ],
    reddens: ["one process does not get more memory"],
  },
  {
    name: "the limit on the memory of the tree",
    edits: [namespace("launcher/waiting-sandbox.ts", "memoryBytes: limits.memoryBytes,", "memoryBytes: 2 ** 31,")],
    reddens: ["many processes together"],
    as: "root",
  },
  {
    name: "the limit on bytes and files written",
    edits: [
      layers(
        "usage.ts",
        "used.bytes > budget.bytes || used.allocated > budget.allocated || used.entries > budget.entries",
        "false",
      ),
      layers("call-layers.ts", "budget.bytes - used.bytes < FULL_BELOW.bytes", "false"),
      layers("call-mounts.ts", "const size = Math.min(bytes, memoryBytes)", "const size = 2 ** 29"),
      namespace("launcher/wire-limits.ts", "limit(RLIMIT.FSIZE, diskBytes),", ""),
    ],
    reddens: [
      "one big file in the workspace",
      "many files everywhere",
      "held open count as well",
      "/dev/shm is no store",
      "a file with holes",
      "files without end",
    ],
  },
  {
    name: "counting files that have no name",
    edits: [layers("usage.ts", "processes !== undefined && !isOver(tally, budget)", "false")],
    reddens: ["held open count as well"],
  },
  {
    name: "memory as declared",
    edits: [
      namespace(
        "launcher/waiting-sandbox.ts",
        "memoryBytes: limits.memoryBytes,",
        "memoryBytes: limits.memoryBytes + 2 ** 29,",
      ),
    ],
    reddens: ["not raised by what may be written"],
    as: "root",
  },
  {
    name: "the limit on holes, and reading a file once for all its names",
    edits: [
      { file: "sandbox/effects/limits.ts", find: "maxHoleBytes: 2 * 2 ** 30", replace: "maxHoleBytes: 2 ** 50" },
      {
        file: "sandbox/effects/reading/digests.ts",
        find: "if (stats.nlink > 1) this.#linked.set(stats.ino, digest)",
        replace: "",
      },
    ],
    reddens: ["files made of holes", "one file under thousands of names"],
  },
  {
    name: "the limit on open files",
    edits: [namespace("launcher/wire-limits.ts", "limit(RLIMIT.NOFILE, limits.openFiles),", "")],
    reddens: ["descriptors run out", "hard limits cannot be raised"],
  },
  {
    name: "the limit on output",
    edits: [processes("capture.ts", "if (total > floodAt && !flooded)", "if (false)")],
    reddens: ["a flood on stdout", "a flood on stderr"],
  },
  {
    name: "the limit on CPU time",
    edits: [
      processes("watch-run.ts", 'stop({ by: "limit", limit: "cpu" })', "void 0"),
      { file: "sandbox/endings.ts", find: "if (cpuMs === undefined) return []", replace: "if (true) return []" },
    ],
    reddens: ["CPU time ends at a limit of whole seconds", "CPU time ends at its limit in spite"],
  },
  {
    name: "the deadline",
    edits: [
      processes(
        "watch-run.ts",
        'setTimeout(() => stop({ by: "limit", limit: "wall" }), limits.wallMs)',
        "setTimeout(() => undefined, limits.wallMs)",
      ),
    ],
    reddens: [
      "ignoring every signal",
      "a daemon in a session",
      "a parent that is stopped",
      "a blocked signal mask",
      "closing every stream",
    ],
  },
  {
    name: "killing the namespace's first process itself",
    edits: noKill,
    reddens: ["does not outlive the deadline"],
  },
  {
    name: "the end of the namespace with the program",
    edits: [
      ...noKill,
      bwrap('"--die-with-parent",', ""),
      bwrap('"--unshare-pid", ', ""),
      namespace("launcher/sealed-run.ts", "await sandbox.treeEnd()", "{ gone: true, cpuMs: undefined }"),
    ],
    reddens: ["what orphans write after", "an orphan that keeps stdout open"],
  },
  {
    name: "the one byte that stops core handlers",
    edits: [namespace("launcher/launcher.ts", "  prlimit(0, RLIMIT.CORE, 1n, 1n)\n", "")],
    reddens: ["a crash hands its memory"],
  },
  {
    name: "refusing what may never be committed",
    edits: [
      {
        file: "sandbox/effects/commit/commit-layer.ts",
        find: "if (refused !== undefined) return",
        replace: "if (false) return",
      },
    ],
    reddens: [
      "an absolute symlink",
      "climbs out of the workspace",
      "a folder swapped for a symlink to the outside",
      "set-id and sticky bits",
      "transaction folder",
    ],
  },
  {
    name: "names reserved at any depth and in any spelling",
    edits: [
      {
        file: "sandbox/effects/names.ts",
        find: "/(^|\\/)\\.caisson-tx[^/]*(\\/|$)/i.test(path)",
        replace: "false",
      },
    ],
    reddens: ["transaction folder"],
  },
  {
    name: "refusing attributes that overlay file systems read",
    as: "root",
    edits: [
      {
        file: "sandbox/effects/xattrs.ts",
        find: "} else if (/^(user|trusted)\\.overlay\\./.test(name)) {",
        replace: "} else if (false) {",
      },
    ],
    reddens: ["file capabilities and overlay marks"],
  },
  {
    name: "the check for conflicts",
    edits: noConflicts,
    reddens: ["that somebody else changed meanwhile", "gained a file meanwhile", "a file swapped for a symlink before"],
  },
  {
    name: "paths that follow no link, and the check for conflicts",
    edits: [
      ...noConflicts,
      {
        file: "linux/files.ts",
        find: "RESOLVE.NO_XDEV | RESOLVE.NO_MAGICLINKS | RESOLVE.NO_SYMLINKS | RESOLVE.BENEATH)",
        replace: "0)",
      },
    ],
    reddens: ["a folder swapped for a symlink before the commit"],
  },
  {
    name: "keeping only declared state of the home",
    edits: [
      layers(
        "sealed-layers.ts",
        "layerOf(home, homeWrites), txRoot: home.txRoot, patterns }",
        "layerOf(home, homeWrites), txRoot: home.txRoot }",
      ),
    ],
    reddens: ["rc files beside declared driver state"],
  },
  {
    name: "telling a folder that looks like a bare repository",
    edits: [
      {
        file: "sandbox/effects/read.ts",
        find: "if (looksLikeRepository(standing.map(displayName)))",
        replace: "if (looksLikeRepository([]))",
      },
    ],
    reddens: ["git hooks, shell rc files"],
  },
]
