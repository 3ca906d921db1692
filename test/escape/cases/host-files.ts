/** Reading and writing what belongs to the host. */
import { mkdirSync, symlinkSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import type { EscapeCase } from "../escape-case.ts"
import { quoted } from "../programs.ts"

export const hostFiles: readonly EscapeCase[] = [
  {
    name: "a file that everybody on the host may read and write is not there",
    language: "python",
    source: ({ ground }) => `
path = ${quoted(ground.secretFile)}
for prefix in ("", "/proc/1/root", "/proc/self/root", "/proc/1/cwd", "/proc/1/task/1/root", "/workspace/../..", "/proc/self/cwd/../.."):
    must_fail("reading " + prefix + path, lambda: print(get(prefix + path)))
    must_fail("writing " + prefix + path, lambda: put(prefix + path, "owned"))`,
  },
  {
    name: "the root of the first process is the sandbox's own",
    language: "python",
    source: `
for pid in [p for p in os.listdir("/proc") if p.isdigit()]:
    seen = may_fail(lambda: sorted(os.listdir("/proc/%s/root" % pid)))
    if seen is not None and seen != sorted(os.listdir("/")): breach("another root: %s" % seen)
    for name in may_fail(lambda: os.listdir("/proc/%s/fd" % pid)) or []:
        link = may_fail(lambda: os.readlink("/proc/%s/fd/%s" % (pid, name))) or ""
        if link.startswith("/") and not link.startswith(("/dev/", "/proc/", "/workspace")): breach("fd %s of %s: %s" % (name, pid, link))
for name in ("srv", "oldroot", "newroot", "mnt", "media", "opt", "boot", "sys"):
    if os.path.exists("/" + name) and os.listdir("/" + name): breach("/%s shows %s" % (name, os.listdir("/" + name)))`,
  },
  {
    name: "password hashes, homes, logs and run-time files of the host are not readable",
    language: "python",
    source: `
for path in ("/etc/shadow", "/etc/gshadow", "/etc/sudoers", "/etc/machine-id", "/etc/ssh/sshd_config", "/root/.bashrc", "/root/.ssh", "/var/log", "/var/lib",
             "/var/spool", "/run/lock", "/run/user", "/sys/class", "/sys/fs/cgroup", "/boot", "/home/ubuntu", "/lost+found", "/etc/fstab", "/etc/crontab"):
    if os.path.lexists(path): breach(path + " is there")
for folder, mine in (("/home", ["tool"]), ("/root", []), ("/var", ["tmp"]), ("/run", ["caisson"])):
    seen = may_fail(lambda: os.listdir(folder)) or []
    if any(name not in mine for name in seen): breach("%s shows %s" % (folder, seen))`,
  },
  {
    name: "the host's users, groups, name and processes do not show",
    language: "python",
    source: ({ ground }) => `
import pwd
names = {user.pw_name for user in pwd.getpwall()}
if names - {"root", "tool", "nobody"}: breach("users of the host: %s" % sorted(names))
for text in (socket.gethostname(), os.uname().nodename, get("/proc/sys/kernel/hostname").decode(), get("/etc/hostname").decode()):
    if ${quoted(ground.hostName)} != "caisson" and ${quoted(ground.hostName)} in text: breach("the host's name: " + text)
pids = [int(p) for p in os.listdir("/proc") if p.isdigit()]
if len(pids) > 3: breach("processes: %s" % pids)
if os.path.exists("/proc/${ground.bait.pid}") and ${ground.bait.pid} not in pids: breach("the bait process is visible")`,
  },
  {
    name: "no environment in reach holds a secret of the host",
    language: "python",
    source: `
for pid in [p for p in os.listdir("/proc") if p.isdigit()]:
    for name in ("environ", "cmdline", "auxv"):
        seen = may_fail(lambda: get("/proc/%s/%s" % (pid, name))) or b""
        if name == "environ": print(seen)
        if b"CAISSON" in seen.upper() and name == "environ": breach("%s of %s: %r" % (name, pid, seen))
allowed = {"PATH", "HOME", "LANG", "PWD", "LC_CTYPE"}
if set(os.environ) - allowed: breach("environment: %s" % sorted(set(os.environ) - allowed))`,
  },
  {
    name: "system folders and program files cannot be written, linked, renamed or re-permitted",
    language: "python",
    source: `
for folder in ("/", "/etc", "/usr", "/usr/bin", "/usr/lib", "/usr/share", "/bin", "/lib", "/dev", "/var", "/run", "/home", "/proc", "/proc/self"):
    must_fail("creating in " + folder, lambda: put(folder + "/caisson-escape", "x"))
    must_fail("a folder in " + folder, lambda: os.mkdir(folder + "/caisson-escape-d"))
    must_fail("a link in " + folder, lambda: os.symlink("x", folder + "/caisson-escape-l"))
    must_fail("chmod " + folder, lambda: os.chmod(folder, 0o777))
    must_fail("utime " + folder, lambda: os.utime(folder))
for path in ("/etc/passwd", "/etc/ld.so.cache", "/etc/resolv.conf", "/usr/bin/python3", "/usr/bin/sh"):
    must_fail("writing " + path, lambda: put(path, "x", "a"))
    must_fail("removing " + path, lambda: os.unlink(path))
    must_fail("renaming " + path, lambda: os.rename(path, "/tmp/x"))
    must_fail("linking " + path, lambda: os.link(path, "/tmp/linked"))`,
  },
  {
    name: "a read-only folder stays so through descriptors, O_PATH and magic links",
    language: "python",
    source: `
fd = os.open("/etc", os.O_RDONLY | os.O_DIRECTORY); path = os.open("/etc/passwd", os.O_PATH)
must_fail("openat", lambda: os.open("x", os.O_CREAT | os.O_WRONLY, dir_fd=fd))
must_fail("magic link", lambda: put("/proc/self/fd/%d/x" % fd, "x"))
must_fail("reopening O_PATH", lambda: os.open("/proc/self/fd/%d" % path, os.O_WRONLY))
must_fail("reopening a read-only descriptor", lambda: os.open("/proc/self/fd/%d" % os.open("/etc/passwd", 0), os.O_RDWR))
must_fail("truncating", lambda: os.truncate("/proc/self/fd/%d" % path, 0))
must_fail("fchmod by magic link", lambda: os.chmod("/proc/self/fd/%d" % path, 0o777))
must_fail("xattr", lambda: os.setxattr("/proc/self/fd/%d" % path, "user.x", b"1"))`,
  },
  {
    name: "neither the program's own file nor the launcher's can be overwritten through /proc",
    language: "python",
    source: `
for path in ("/proc/self/exe", "/proc/1/exe", "/proc/thread-self/exe", "/proc/self/map_files"):
    for flags in (os.O_WRONLY, os.O_RDWR, os.O_WRONLY | os.O_TRUNC): must_fail("opening %s" % path, lambda: os.open(path, flags))
fd = os.open("/proc/1/exe", os.O_PATH) if os.path.exists("/proc/1/exe") else -1
must_fail("by O_PATH", lambda: os.open("/proc/self/fd/%d" % fd, os.O_RDWR))`,
  },
  {
    name: "kernel settings are read-only, those of the call's own namespaces included",
    language: "python",
    source: `
for folder, _, names in os.walk("/proc/sys"):
    for name in names:
        if os.access(os.path.join(folder, name), os.W_OK): breach("writable: " + os.path.join(folder, name))
for path, text in (("/proc/sys/kernel/shmmax", "4096"), ("/proc/sys/fs/mqueue/msg_max", "10"), ("/proc/sys/net/ipv4/ip_unprivileged_port_start", "1024"),
                   ("/proc/sys/kernel/core_pattern", "core"), ("/proc/sys/vm/overcommit_memory", "0"), ("/proc/sys/user/max_user_namespaces", "1")):
    must_fail("writing " + path, lambda: put(path, text))`,
  },
  {
    name: "sysrq, the kernel log, kernel memory and interrupts are out of reach",
    language: "python",
    source: `
def unmasked(path):
    fd = os.open(path, os.O_WRONLY)
    if os.fstat(fd).st_rdev == os.stat("/dev/null").st_rdev: raise OSError("only the null device")
    return fd
for path in ("/proc/sysrq-trigger", "/proc/irq/default_smp_affinity", "/proc/acpi/wakeup", "/proc/mtrr", "/proc/scsi/scsi"):
    must_fail("opening for writing " + path, lambda: unmasked(path))
for path in ("/proc/kcore", "/proc/kmsg", "/proc/kpagecount", "/proc/kpageflags", "/dev/mem", "/dev/kmem", "/dev/port", "/dev/kmsg", "/dev/fuse", "/dev/kvm",
             "/dev/vsock", "/dev/vhost-net", "/dev/net/tun", "/dev/loop-control", "/dev/vda", "/dev/sda", "/dev/nvme0n1", "/dev/mapper/control", "/dev/uinput", "/dev/cpu/0/msr"):
    must_fail("reading " + path, lambda: os.read(os.open(path, os.O_RDONLY | os.O_NONBLOCK), 16))
allowed = {"console", "core", "fd", "full", "null", "ptmx", "pts", "random", "shm", "stderr", "stdin", "stdout", "tty", "urandom", "zero"}
if set(os.listdir("/dev")) - allowed: breach("devices: %s" % sorted(set(os.listdir("/dev")) - allowed))
must_fail("syslog", lambda: call("syslog", 3, ctypes.create_string_buffer(4096), 4096))`,
  },
  {
    name: "paths that the view denies stay hidden from every way of asking",
    language: "python",
    source: `
for path in (".env", "docs/private/key", "docs/private/../private/key", "/proc/self/cwd/.env", "by-link"):
    must_fail("reading " + path, lambda: print(open(path).read() or 1/0) if os.path.getsize(path) else (_ for _ in ()).throw(OSError()))
must_fail("listing", lambda: os.listdir("docs/private")[0])
must_fail("chmod", lambda: os.chmod(".env", 0o644)); must_fail("removing", lambda: os.unlink(".env"))
must_fail("renaming", lambda: os.rename(".env", "x")); must_fail("linking", lambda: os.link(".env", "y"))
must_fail("renaming its folder", lambda: os.rename("docs/private", "z")); must_fail("renaming a folder above", lambda: os.rename("docs", "moved"))
fd = may_fail(lambda: os.open(".env", os.O_PATH))
if fd is not None: must_fail("by O_PATH", lambda: os.read(os.open("/proc/self/fd/%d" % fd, 0), 10)[0])`,
    profile: { view: { read: ["**"], deny: [".env", "docs/private/**"] } },
    prepare({ workspace, ground }) {
      writeFileSync(`${workspace}/.env`, ground.token)
      mkdirSync(`${workspace}/docs/private`)
      writeFileSync(`${workspace}/docs/private/key`, ground.token)
      symlinkSync("docs/private/key", `${workspace}/by-link`)
    },
  },
  {
    name: "a symlink in the workspace that leads to a secret of the host leads nowhere",
    language: "sh",
    source: "cat leak; cat dir/secret; cat abs; ls -la leak/ dir/ >/dev/null 2>&1; echo owned > leak; true",
    prepare({ workspace, ground }) {
      symlinkSync(ground.secretFile, `${workspace}/leak`)
      symlinkSync(ground.folder, `${workspace}/dir`)
      symlinkSync("/etc/shadow", `${workspace}/abs`)
    },
  },
  {
    name: "/proc says nothing of the kernel's command line, configuration, symbols, devices, keys and locks",
    language: "python",
    source: `
for name in ("bootconfig", "cmdline", "config.gz", "consoles", "devices", "diskstats", "dma", "interrupts", "iomem", "ioports", "kallsyms", "key-users", "keys", "locks", "mdstat", "misc", "modules", "partitions", "softirqs", "swaps"):
    said = may_fail(lambda: get("/proc/" + name))
    if said: breach("/proc/%s: %r" % (name, said[:60]))
for name in ("acpi", "asound", "bus", "driver", "dynamic_debug", "fs", "irq", "pressure", "scsi", "tty"):
    listed = may_fail(lambda: os.listdir("/proc/" + name))
    if listed: breach("/proc/%s: %s" % (name, listed[:5]))
for name in ("cpuinfo", "meminfo", "stat", "uptime", "filesystems", "mounts", "self/status", "sys/kernel/osrelease", "sys/kernel/random/uuid"):
    if not get("/proc/" + name): breach("/proc/%s is needed and empty" % name)`,
  },
  {
    name: "the mount table does not say where on the host a driver's files, the workspace and the data folder lie",
    language: "python",
    source: `
print(get("/opt/driver/words").decode())
for name in ("mountinfo", "mounts", "mountstats"):
    for line in open("/proc/self/" + name):
        if "caisson-escape" in line or "caisson-data" in line: breach(line.strip())`,
    prepare: ({ outside }) => writeFileSync(join(outside, "words"), "of the driver"),
    profile: ({ outside }) => ({ bundles: { [outside]: "/opt/driver" } }),
  },
]
