/**
 * What a sealed process may not ask of the kernel, as data. One table for every backend.
 *
 * Guarantees: a call not listed here is allowed; a listed one is refused on x64 and arm64 alike. Each rule says
 * why it is here. Pure data, no I/O.
 */

/** `[x64, arm64]` numbers; null where the architecture has no such call. */
export const syscallNumbers = {
  ptrace: [101, 117],
  process_vm_readv: [310, 270],
  process_vm_writev: [311, 271],
  process_madvise: [440, 440],
  kcmp: [312, 272],
  pidfd_getfd: [438, 438],
  mount: [165, 40],
  umount2: [166, 39],
  pivot_root: [155, 41],
  chroot: [161, 51],
  move_mount: [429, 429],
  open_tree: [428, 428],
  fsopen: [430, 430],
  fsconfig: [431, 431],
  fsmount: [432, 432],
  fspick: [433, 433],
  mount_setattr: [442, 442],
  swapon: [167, 224],
  swapoff: [168, 225],
  reboot: [169, 142],
  kexec_load: [246, 104],
  kexec_file_load: [320, 294],
  init_module: [175, 105],
  finit_module: [313, 273],
  delete_module: [176, 106],
  create_module: [174, null],
  get_kernel_syms: [177, null],
  query_module: [178, null],
  bpf: [321, 280],
  perf_event_open: [298, 241],
  keyctl: [250, 219],
  add_key: [248, 217],
  request_key: [249, 218],
  userfaultfd: [323, 282],
  io_uring_setup: [425, 425],
  io_uring_enter: [426, 426],
  io_uring_register: [427, 427],
  unshare: [272, 97],
  setns: [308, 268],
  open_by_handle_at: [304, 265],
  name_to_handle_at: [303, 264],
  acct: [163, 89],
  quotactl: [179, 60],
  quotactl_fd: [443, 443],
  nfsservctl: [180, 42],
  lookup_dcookie: [212, 18],
  syslog: [103, 116],
  settimeofday: [164, 170],
  clock_settime: [227, 112],
  clock_adjtime: [305, 266],
  adjtimex: [159, 171],
  sethostname: [170, 161],
  setdomainname: [171, 162],
  iopl: [172, null],
  ioperm: [173, null],
  modify_ldt: [154, null],
  vhangup: [153, 58],
  uselib: [134, null],
  ustat: [136, null],
  sysfs: [139, null],
  _sysctl: [156, null],
  fanotify_init: [300, 262],
  migrate_pages: [256, 238],
  move_pages: [279, 239],
  memfd_create: [319, 279],
  memfd_secret: [447, 447],
  personality: [135, 92],
  fork: [57, null],
  vfork: [58, null],
  clone: [56, 220],
  clone3: [435, 435],
  close_range: [436, 436],
  socket: [41, 198],
  socketpair: [53, 199],
  ioctl: [16, 29],
} as const satisfies Record<string, readonly [number | null, number | null]>
export type SyscallName = keyof typeof syscallNumbers

export type Refusal = "EPERM" | "ENOSYS" | "EAFNOSUPPORT" | "kill"

/** A test on the low 32 bits of one argument. */
export type ArgumentTest =
  | { readonly arg: number; readonly in: readonly number[] }
  | { readonly arg: number; readonly notIn: readonly number[] }
  | { readonly arg: number; readonly anyBit: number }
  | { readonly arg: number; readonly noneOfBits: number }

export interface Rule {
  readonly calls: readonly SyscallName[]
  /** refused when every test holds; no test: refused always */
  readonly when?: readonly ArgumentTest[]
  readonly refusal: Refusal
  readonly why: string
}

const CLONE_NEW_ANY = 0x7e020080
const CLONE_THREAD = 0x00010000
const CLONE_FILES = 0x00000400
const CLOSE_RANGE_UNSHARE = 0x2
const AF = { UNIX: 1, INET: 2, INET6: 10, NETLINK: 16 } as const
/** default, ICMP, TCP, UDP, ICMPv6, multipath TCP */
const INTERNET_PROTOCOLS = [0, 1, 6, 17, 58, 262]
/** stream, datagram and raw (which the kernel refuses by itself), each with or without close-on-exec and non-blocking */
const INTERNET_TYPES = [1, 2, 3].flatMap((type) => [0, 0x800, 0x80000, 0x80800].map((flags) => type | flags))
const TIOCSTI = 0x5412
const TIOCLINUX = 0x541c
const TIOCSETD = 0x5423
/** the execution domains that ordinary programs ask for: query, none, no address randomisation, 32-bit uname */
const HARMLESS_PERSONALITIES = [0x0, 0x8, 0x20000, 0x20008, 0x40000, 0xffffffff]

const base: readonly Rule[] = [
  {
    calls: ["ptrace", "process_vm_readv", "process_vm_writev", "process_madvise", "kcmp", "pidfd_getfd"],
    refusal: "EPERM",
    why: "reading or steering other processes",
  },
  {
    calls: [
      "mount",
      "umount2",
      "pivot_root",
      "chroot",
      "move_mount",
      "open_tree",
      "fsopen",
      "fsconfig",
      "fsmount",
      "fspick",
      "mount_setattr",
    ],
    refusal: "EPERM",
    why: "changing what the sandbox sees",
  },
  { calls: ["unshare", "setns"], refusal: "EPERM", why: "new or foreign namespaces" },
  { calls: ["clone"], when: [{ arg: 0, anyBit: CLONE_NEW_ANY }], refusal: "EPERM", why: "new namespaces by clone" },
  { calls: ["clone3"], refusal: "ENOSYS", why: "its flags cannot be inspected; libc falls back to clone" },
  {
    calls: ["clone"],
    when: [
      { arg: 0, anyBit: CLONE_THREAD },
      { arg: 0, noneOfBits: CLONE_FILES },
    ],
    refusal: "EPERM",
    why: "a thread with descriptors of its own holds files that nobody sees; threads of any library share them",
  },
  {
    calls: ["close_range"],
    when: [{ arg: 2, anyBit: CLOSE_RANGE_UNSHARE }],
    refusal: "ENOSYS",
    why: "the same by another call; programs fall back to closing one by one",
  },
  {
    calls: [
      "swapon",
      "swapoff",
      "reboot",
      "kexec_load",
      "kexec_file_load",
      "init_module",
      "finit_module",
      "delete_module",
      "create_module",
      "get_kernel_syms",
      "query_module",
      "acct",
      "quotactl",
      "quotactl_fd",
      "nfsservctl",
      "lookup_dcookie",
      "syslog",
      "settimeofday",
      "clock_settime",
      "clock_adjtime",
      "adjtimex",
      "sethostname",
      "setdomainname",
      "iopl",
      "ioperm",
      "modify_ldt",
      "vhangup",
      "uselib",
      "ustat",
      "sysfs",
      "_sysctl",
    ],
    refusal: "EPERM",
    why: "administration of the machine",
  },
  {
    calls: ["bpf", "perf_event_open", "userfaultfd", "fanotify_init", "migrate_pages", "move_pages"],
    refusal: "EPERM",
    why: "kernel surface that tools do not need and exploits do",
  },
  {
    calls: ["io_uring_setup", "io_uring_enter", "io_uring_register"],
    refusal: "ENOSYS",
    why: "does I/O past every other rule here",
  },
  { calls: ["keyctl", "add_key", "request_key"], refusal: "EPERM", why: "kernel keyrings are shared with the host" },
  { calls: ["open_by_handle_at", "name_to_handle_at"], refusal: "EPERM", why: "opens files outside the mounted view" },
  { calls: ["memfd_create", "memfd_secret"], refusal: "ENOSYS", why: "a way to run a program that is on no mount" },
  {
    calls: ["personality"],
    when: [{ arg: 0, notIn: HARMLESS_PERSONALITIES }],
    refusal: "EPERM",
    why: "odd execution domains weaken the kernel's own guards",
  },
  {
    calls: ["socket"],
    when: [{ arg: 0, notIn: [AF.UNIX, AF.INET, AF.INET6, AF.NETLINK] }],
    refusal: "EAFNOSUPPORT",
    why: "families such as AF_VSOCK and AF_PACKET are not bounded by a network namespace",
  },
  {
    calls: ["socket"],
    when: [
      { arg: 0, in: [AF.NETLINK] },
      { arg: 2, notIn: [0] },
    ],
    refusal: "EAFNOSUPPORT",
    why: "only NETLINK_ROUTE, which getaddrinfo reads",
  },
  {
    calls: ["socket"],
    when: [
      { arg: 0, in: [AF.INET, AF.INET6] },
      { arg: 2, notIn: INTERNET_PROTOCOLS },
    ],
    refusal: "EAFNOSUPPORT",
    why: "SCTP, DCCP and their kin load kernel modules and pass unrecorded",
  },
  {
    calls: ["socket"],
    when: [
      { arg: 0, in: [AF.INET, AF.INET6] },
      { arg: 1, notIn: INTERNET_TYPES },
    ],
    refusal: "EAFNOSUPPORT",
    why: "the same by their types, which stand for a protocol where none is named",
  },
  {
    calls: ["socketpair"],
    when: [{ arg: 0, notIn: [AF.UNIX] }],
    refusal: "EAFNOSUPPORT",
    why: "no pair of any other family is needed",
  },
  {
    calls: ["ioctl"],
    when: [{ arg: 1, in: [TIOCSTI, TIOCLINUX, TIOCSETD] }],
    refusal: "EPERM",
    why: "typing into somebody else's terminal",
  },
]

const childless: readonly Rule[] = [
  { calls: ["fork", "vfork"], refusal: "kill", why: "the driver declares that the program has no child processes" },
  {
    calls: ["clone"],
    when: [{ arg: 0, noneOfBits: CLONE_THREAD }],
    refusal: "kill",
    why: "the driver declares no child processes; threads are allowed",
  },
]

/** The rules in force, the narrower first. `children`: may the program have child processes. */
export const rulesFor = (options: { readonly children: boolean }): readonly Rule[] =>
  options.children ? base : [...base.filter((rule) => rule.calls[0] === "clone"), ...childless, ...base]
