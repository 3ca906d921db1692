/** System calls that change the machine, or that exploits need: mounts, namespaces, privileges, odd entry points. */
import type { EscapeCase, MachineFacts } from "../escape-case.ts"

const onX64 = ({ arch }: MachineFacts): boolean => arch === "x64"
const with32BitEntry = ({ arch, userMode }: MachineFacts): boolean => arch === "x64" && !userMode
const refused = (name: string, source: string): EscapeCase => ({ name, language: "python", source })

/** A forbidden call by an entry point that a careless filter does not see. */
const byForeignEntry = (name: string, code: string, only: EscapeCase["only"] = with32BitEntry): EscapeCase => ({
  name,
  language: "python",
  source: `
own = machine_code(b"\\xb8\\x27\\x00\\x00\\x00\\x0f\\x05\\xc3")
if own() != os.getpid(): breach("code of the program's own does not run, so nothing is shown")
run = machine_code(${code})
child = os.fork()
if child == 0:
    result = run()
    breach("the call came back with %d" % result)
    os._exit(0)
_, status = os.waitpid(child, 0)
if not os.WIFSIGNALED(status): breach("the process lived on: %d" % status)`,
  only,
})

export const kernel: readonly EscapeCase[] = [
  refused(
    "mounts can be neither made, moved, changed nor removed",
    `
must_fail("tmpfs", lambda: call("mount", b"none", b"/tmp", b"tmpfs", 0, 0))
must_fail("bind", lambda: call("mount", b"/etc", b"/tmp", 0, 4096, 0))
must_fail("remount writable", lambda: call("mount", b"none", b"/", 0, 32 | 4096, 0))
must_fail("remount executable", lambda: call("mount", b"none", b"/tmp", 0, 32 | 4096 | 2 | 4, 0))
must_fail("proc", lambda: call("mount", b"proc", b"/tmp", b"proc", 0, 0))
must_fail("overlay", lambda: call("mount", b"overlay", b"/tmp", b"overlay", 0, b"lowerdir=/,upperdir=/tmp,workdir=/tmp"))
for target in (b"/workspace", b"/proc/sys", b"/dev/shm", b"/", b"/usr/lib"): must_fail("umount", lambda: call("umount2", target, 2))
must_fail("pivot_root", lambda: call("pivot_root", b".", b".")); must_fail("chroot", lambda: call("chroot", b"/tmp"))`,
  ),
  refused(
    "the newer mount calls are refused too",
    `
may_fail(lambda: call("unshare", 0x10000000 | 0x20000))
must_fail("open_tree", lambda: call("open_tree", -100, b"/tmp", 1)); must_fail("open_tree_attr", lambda: call("open_tree_attr", -100, b"/", 1, 0, 0))
must_fail("move_mount", lambda: call("move_mount", -100, b"/tmp", -100, b"/etc", 0))
must_fail("fsopen", lambda: call("fsopen", b"tmpfs", 0)); must_fail("fspick", lambda: call("fspick", -100, b"/", 0))
must_fail("fsmount", lambda: call("fsmount", 0, 0, 0)); must_fail("mount_setattr", lambda: call("mount_setattr", -100, b"/", 0, bytes(32), 32))`,
  ),
  refused(
    "no new namespace of any kind by unshare",
    `
for name, flag in dict(user=0x10000000, mount=0x20000, pid=0x20000000, net=0x40000000, ipc=0x8000000, uts=0x4000000, cgroup=0x2000000, time=0x80).items():
    must_fail("unshare " + name, lambda: call("unshare", flag))
    must_fail("unshare user and " + name, lambda: call("unshare", flag | 0x10000000))`,
  ),
  refused(
    "no new namespace by clone or clone3",
    `
for flag in (0x10000000, 0x20000, 0x20000000, 0x40000000, 0x8000000, 0x4000000, 0x2000000):
    def clone(number, *args):
        pid = call(number, *args)
        if pid == 0: os._exit(0)
        os.waitpid(pid, 0); return pid
    must_fail("clone %x" % flag, lambda: clone("clone", flag | 17, 0, 0, 0, 0))
    must_fail("clone with high bits", lambda: clone("clone", flag | 17 | (1 << 40), 0, 0, 0, 0))
    must_fail("clone3 %x" % flag, lambda: clone("clone3", struct.pack("=11Q", flag, 0, 0, 0, 17, 0, 0, 0, 0, 0, 0), 88))`,
  ),
  refused(
    "no other namespace can be joined",
    `
may_fail(lambda: call("unshare", 0x10000000 | 0x40000000))
must_fail("setns to its own network", lambda: call("setns", os.open("/proc/self/ns/net", 0), 0))
for name in may_fail(lambda: os.listdir("/proc/1/ns")) or []:
    fd = may_fail(lambda: os.open("/proc/1/ns/" + name, 0))
    if fd is not None: must_fail("setns " + name, lambda: call("setns", fd, 0))
must_fail("setns by pidfd", lambda: call("setns", call("pidfd_open", 1, 0), 0x10000000 | 0x20000))
for request in (0xB701, 0xB702): must_fail("the owner of a namespace", lambda: fcntl.ioctl(os.open("/proc/self/ns/user", 0), request))
for request in (0xB701, 0xB702): must_fail("the parent of a namespace", lambda: fcntl.ioctl(os.open("/proc/self/ns/pid", 0), request) if request == 0xB702 else (_ for _ in ()).throw(OSError()))`,
  ),
  refused(
    "the user namespace's maps cannot be widened",
    `
for name in ("uid_map", "gid_map", "setgroups", "projid_map"): must_fail(name, lambda: put("/proc/self/" + name, "0 0 4294967295"))
if len(open("/proc/self/uid_map").readlines()) != 1: breach("more than one range is mapped")`,
  ),
  refused(
    "no capability is held, can be gained or is left in the bounding set",
    `
status = dict(line.split(":\\t") for line in open("/proc/self/status").read().splitlines() if ":\\t" in line)
for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"):
    if int(status[name], 16): breach(name + " " + status[name])
if status["NoNewPrivs"] != "1" or status["Seccomp"] != "2": breach("NoNewPrivs %s Seccomp %s" % (status["NoNewPrivs"], status["Seccomp"]))
must_fail("capset", lambda: call("capset", struct.pack("=II", 0x20080522, 0), struct.pack("=6I", *[0xffffffff] * 6)))
must_fail("raising ambient", lambda: call("prctl", 47, 2, 21, 0, 0)); must_fail("securebits", lambda: call("prctl", 28, 0))
must_fail("clearing no_new_privs", lambda: call("prctl", 38, 0, 0, 0, 0))`,
  ),
  refused(
    "nobody else's user or group can be taken on",
    `
for user in (0, 65534, 1001): must_fail("setuid %d" % user, lambda: os.setresuid(user, user, user)); must_fail("setgid %d" % user, lambda: os.setresgid(user, user, user))
must_fail("setgroups", lambda: os.setgroups([0]))
open("/tmp/mine", "w").close()
must_fail("chown to root", lambda: os.chown("/tmp/mine", 0, 0)); must_fail("chown of another's file", lambda: os.chown("/etc/passwd", 1000, 1000))`,
  ),
  refused(
    "bpf, perf, userfaultfd, io_uring, fanotify and file handles are refused",
    `
must_fail("bpf", lambda: call("bpf", 0, bytes(128), 128)); must_fail("bpf program", lambda: call("bpf", 5, bytes(128), 128))
must_fail("perf_event_open", lambda: call("perf_event_open", struct.pack("=II", 1, 112) + bytes(104), 0, -1, -1, 0))
for flag in (0, 1, 0x80801): must_fail("userfaultfd", lambda: call("userfaultfd", flag))
must_fail("io_uring_setup", lambda: call("io_uring_setup", 4, ctypes.create_string_buffer(120)))
must_fail("io_uring_enter", lambda: call("io_uring_enter", 0, 0, 0, 0, 0, 0)); must_fail("fanotify", lambda: call("fanotify_init", 0x200, 0))
handle = ctypes.create_string_buffer(struct.pack("=Ii", 128, 0) + bytes(128)); number = ctypes.c_int()
must_fail("name_to_handle_at", lambda: call("name_to_handle_at", -100, b"/etc", handle, ctypes.byref(number), 0))
must_fail("open_by_handle_at", lambda: call("open_by_handle_at", -100, handle, 0))`,
  ),
  refused(
    "the clock, the host's name, swap, modules, accounting and the power switch are out of reach",
    `
now = struct.pack("=qq", int(time.time()), 0)
must_fail("settimeofday", lambda: call("settimeofday", now, 0)); must_fail("clock_settime", lambda: call("clock_settime", 0, now))
must_fail("adjtimex", lambda: call("adjtimex", struct.pack("=I", 0x4000) + bytes(204))); must_fail("sethostname", lambda: call("sethostname", b"owned", 5)); must_fail("setdomainname", lambda: call("setdomainname", b"owned", 5))
must_fail("swapoff", lambda: call("swapoff", b"/x")); must_fail("init_module", lambda: call("init_module", b"x", 1, b"")); must_fail("finit_module", lambda: call("finit_module", 0, b"", 0))
must_fail("delete_module", lambda: call("delete_module", b"x", 0)); must_fail("acct", lambda: call("acct", b"/tmp/x")); must_fail("quotactl", lambda: call("quotactl", 0, 0, 0, 0))
must_fail("kexec", lambda: call("kexec_load", 0, 0, 0, 0)); must_fail("reboot with wrong magic", lambda: call("reboot", 1, 2, 3, 0)); must_fail("vhangup", lambda: call("vhangup"))`,
  ),
  refused(
    "scheduling and priority cannot be raised",
    `
must_fail("nice -5", lambda: os.setpriority(os.PRIO_PROCESS, 0, -5)); must_fail("real time", lambda: os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(10)))
must_fail("another user's priority", lambda: os.setpriority(os.PRIO_USER, 65534, 19)); must_fail("oom_score_adj", lambda: put("/proc/self/oom_score_adj", "-1000"))
must_fail("migrate_pages", lambda: call("migrate_pages", 0, 0, 0, 0)); must_fail("a protected heap", lambda: call("memfd_secret", 0))`,
  ),
  refused(
    "hard limits cannot be raised",
    `
for name in ("CORE", "NOFILE", "FSIZE", "NPROC", "DATA", "CPU"):
    which = getattr(resource, "RLIMIT_" + name); soft, hard = resource.getrlimit(which)
    if hard != resource.RLIM_INFINITY:
        must_fail("raising " + name, lambda: resource.setrlimit(which, (hard + 1, hard + 1)))
        must_fail("unlimited " + name, lambda: resource.prlimit(os.getpid(), which, (resource.RLIM_INFINITY, resource.RLIM_INFINITY)))
if resource.getrlimit(resource.RLIMIT_NOFILE)[1] != 256: breach("open files: %s" % (resource.getrlimit(resource.RLIMIT_NOFILE),))`,
  ),
  refused(
    "a crash hands its memory to no file and to no handler of the host",
    `
if resource.getrlimit(resource.RLIMIT_CORE) != (1, 1): breach("only a limit of one byte stops a handler behind a pipe: %s" % (resource.getrlimit(resource.RLIMIT_CORE),))
may_fail(lambda: put("/proc/self/coredump_filter", "0xff"))
child = os.fork()
if child == 0:
    call("prctl", 4, 1, 0, 0, 0); os.abort()
_, status = os.waitpid(child, 0)
if os.WCOREDUMP(status): breach("a core was dumped")
if [n for n in os.listdir("/workspace") if n.startswith("core")]: breach("a core file lies in the workspace")`,
  ),
  refused(
    "odd execution domains, segment tables and port access are refused",
    `
for domain in (0x0100000, 0x0200000, 0x0400000, 0x1000000, 0x4000000): must_fail("personality %x" % domain, lambda: call("personality", domain))
for name in ("modify_ldt", "iopl", "ioperm", "uselib", "ustat", "sysfs", "_sysctl", "nfsservctl", "lookup_dcookie"):
    if NR[name] >= 0: must_fail(name, lambda: call(name, 3, 0, 0, 0))`,
  ),
  refused(
    "device nodes cannot be made, in no writable place",
    `
for folder in ("/workspace", "/tmp", "/dev/shm", "/home/tool"):
    for kind, major, minor in ((stat.S_IFBLK, 254, 0), (stat.S_IFBLK, 8, 0), (stat.S_IFCHR, 1, 1), (stat.S_IFCHR, 5, 1), (stat.S_IFCHR, 10, 229)):
        must_fail("mknod %d:%d in %s" % (major, minor, folder), lambda: os.mknod(folder + "/node", kind | 0o666, os.makedev(major, minor)))`,
  ),
  byForeignEntry(
    "mount by the 32-bit entry (int 0x80) ends the process",
    String.raw`b"\xb8\x15\x00\x00\x00\x31\xdb\x31\xc9\x31\xd2\xcd\x80\x48\x98\xc3"`,
  ),
  byForeignEntry(
    "harmless getpid by the 32-bit entry ends the process as well",
    String.raw`b"\xb8\x14\x00\x00\x00\xcd\x80\x48\x98\xc3"`,
  ),
  byForeignEntry("a call by the x32 table ends the process", String.raw`b"\xb8\x27\x00\x00\x40\x0f\x05\xc3"`, onX64),
  {
    name: "seccomp cannot be taken off, and a filter of the program's own loosens nothing",
    language: "python",
    source: `
must_fail("mode 0", lambda: call("prctl", 22, 0, 0, 0, 0))
allow = ctypes.create_string_buffer(struct.pack("=HBBI", 6, 0, 0, 0x7fff0000))
program = struct.pack("=HxxxxxxQ", 1, ctypes.addressof(allow))
may_fail(lambda: call("seccomp", 1, 0, program))
must_fail("ptrace behind a filter of its own", lambda: call("ptrace", 0, 0, 0, 0)); must_fail("unshare behind it", lambda: call("unshare", 0x10000000))`,
  },
]
