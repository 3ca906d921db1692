/** Typing into somebody else's terminal, and descriptors that the host left open. */
import type { EscapeCase } from "../escape-case.ts"

export const terminal: readonly EscapeCase[] = [
  {
    name: "a program with a terminal cannot type into it",
    language: "python",
    source: `
for fd in (0, 1, 2):
    for request in (0x5412, 0x5412 | (1 << 32)):
        value = ctypes.create_string_buffer(b"x")
        must_fail("TIOCSTI %x" % request, lambda: call("ioctl", fd, request, value))
    must_fail("TIOCLINUX", lambda: call("ioctl", fd, 0x541C, ctypes.create_string_buffer(b"\\x03")))
    must_fail("TIOCSETD", lambda: call("ioctl", fd, 0x5423, struct.pack("=i", 2)))
    must_fail("TIOCCONS", lambda: call("ioctl", fd, 0x541D, 0))`,
    profile: { tty: true },
  },
  {
    name: "a program with a terminal cannot type into it once it made it its controlling terminal",
    language: "python",
    source: `
if os.fork() == 0:
    os.setsid(); may_fail(lambda: fcntl.ioctl(0, 0x540E, 0))
    tty = may_fail(lambda: os.open("/dev/tty", os.O_RDWR))
    if tty is not None: must_fail("TIOCSTI on /dev/tty", lambda: call("ioctl", tty, 0x5412, ctypes.create_string_buffer(b"x")))
    console = may_fail(lambda: os.open("/dev/console", os.O_RDWR | os.O_NOCTTY))
    if console is not None: must_fail("TIOCSTI on /dev/console", lambda: call("ioctl", console, 0x5412, ctypes.create_string_buffer(b"x")))
    os._exit(0)
os.wait()`,
    profile: { tty: true },
  },
  {
    name: "terminals of the host are not there",
    language: "python",
    source: `
seen = [name for name in os.listdir("/dev/pts") if name != "ptmx"]
if seen: breach("terminals: %s" % seen)
for path in ("/dev/tty0", "/dev/tty1", "/dev/ttyS0", "/dev/hvc0", "/dev/vcs", "/dev/console", "/dev/tty"):
    must_fail("opening " + path, lambda: os.open(path, os.O_RDWR | os.O_NOCTTY | os.O_NONBLOCK))`,
  },
  {
    name: "no descriptor of the host is open",
    language: "python",
    source: `
listing = os.open("/proc/self/fd", os.O_DIRECTORY)
for name in os.listdir(listing):
    if int(name) not in (0, 1, 2, listing): 
        link = may_fail(lambda: os.readlink("/proc/self/fd/" + name))
        if link and link != "/proc/%d/fd" % os.getpid(): breach("descriptor %s: %s" % (name, link))
for fd in range(3, 256):
    if fd == listing: continue
    try: os.fstat(fd)
    except OSError: continue
    breach("descriptor %d is open" % fd); print(may_fail(lambda: os.pread(fd, 100, 0))); may_fail(lambda: os.pwrite(fd, b"owned", 0))
for pid in ("1",):
    for name in may_fail(lambda: os.listdir("/proc/1/fd")) or []:
        link = may_fail(lambda: os.readlink("/proc/1/fd/" + name)) or ""
        if not link.startswith(("socket:", "pipe:", "anon_inode:[eventfd]", "/dev/")): breach("descriptor %s of the first process: %s" % (name, link))
        may_fail(lambda: print(os.pread(os.open("/proc/1/fd/" + name, os.O_RDONLY | os.O_NONBLOCK), 100, 0)))`,
  },
  {
    name: "perl, too, finds no open descriptor and no way to root",
    language: "perl",
    source: `
for my $fd (3 .. 255) { my $copy = POSIX::dup($fd); if (defined $copy) { next if $fd < 8 && -p "/proc/self/fd/$fd"; my $link = readlink "/proc/self/fd/$fd"; breach("descriptor $fd: $link"); POSIX::close($copy); } }
must_fail("setuid", do { local $> = 0; $> == 0 });
must_fail("chroot", chroot("/tmp"));
must_fail("kill the first process", kill(9, 1) && ! -d "/proc/1");
must_fail("reading shadow", open(my $h, "<", "/etc/shadow"));
must_fail("a raw socket", socket(my $s, PF_INET, SOCK_RAW, 1));`,
  },
]
