/** The little that hostile programs share, and how a case's source becomes a command. Pure. */
import { syscallNumbers } from "../../src/sandbox/seccomp/rules.ts"
import type { Language } from "./escape-case.ts"

/** Calls that no rule names but that cases make: `[x64, arm64]`. */
const furtherNumbers = {
  prctl: [157, 167],
  seccomp: [317, 277],
  execveat: [322, 281],
  pidfd_open: [434, 434],
  pidfd_send_signal: [424, 424],
  prlimit64: [302, 261],
  mknodat: [259, 33],
  fchownat: [260, 54],
  open_tree_attr: [467, 467],
  setuid: [105, 146],
  setgid: [106, 144],
  capset: [126, 91],
  setpriority: [141, 140],
  sched_setscheduler: [144, 119],
  shmget: [29, 194],
  shmat: [30, 196],
  msgget: [68, 186],
  semget: [64, 190],
  mq_open: [240, 180],
} as const

const column = process.arch === "arm64" ? 1 : 0
const numbers = Object.fromEntries(
  Object.entries({ ...syscallNumbers, ...furtherNumbers }).map(([name, pair]) => [name, pair[column] ?? -1]),
)

const pythonPrelude = `
import ctypes, errno, fcntl, mmap, os, resource, signal, socket, stat, struct, subprocess, sys, threading, time
NR = ${JSON.stringify(numbers)}
libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long
def breach(what): print("BREACH: " + str(what), flush=True)
def call(name, *args):
    made = [ctypes.c_char_p(a) if isinstance(a, bytes) else ctypes.c_long(a) if isinstance(a, int) else a for a in args]
    result = libc.syscall(ctypes.c_long(NR.get(name, name) if isinstance(name, str) else name), *made)
    if result < 0: raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), str(name))
    return result
def must_fail(what, attempt):
    try: got = attempt()
    except (OSError, ValueError, subprocess.SubprocessError): return
    breach(what + " succeeded: " + repr(got)[:80])
def may_fail(attempt):
    try: return attempt()
    except OSError: return None
def put(path, text, mode="w"):
    with open(path, mode) as f: return f.write(text)
def get(path):
    with open(path, "rb") as f: return f.read(4096)
def dial(address, port, family=socket.AF_INET, kind=socket.SOCK_STREAM):
    s = socket.socket(family, kind)
    s.settimeout(3)
    s.connect((address, port))
    s.send(b"caisson-escape")
    return s.recv(100) if kind == socket.SOCK_STREAM else None
pages = []
def machine_code(*code):
    page = mmap.mmap(-1, 4096, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    page.write(b"".join(code))
    pages.append(page)
    address = ctypes.addressof(ctypes.c_char.from_buffer(page))
    return ctypes.CFUNCTYPE(ctypes.c_long)(address)
`
const perlPrelude = `
use strict; use warnings; use Socket; use Fcntl; use POSIX ();
$| = 1;
sub breach { print "BREACH: @_\\n"; }
sub must_fail { my ($what, $worked) = @_; breach("$what succeeded") if $worked; }
`
const shellPrelude = `breach() { echo "BREACH: $*"; }\nmust_fail() { if "$@" >/dev/null 2>&1; then breach "$* succeeded"; fi; }\n`

export const program: Readonly<Record<Language, string>> = {
  python: "/usr/bin/python3",
  perl: "/usr/bin/perl",
  sh: "/usr/bin/sh",
}

export const commandOf = (language: Language, source: string): string[] => {
  switch (language) {
    case "python":
      return [program.python, "-c", `${pythonPrelude}${source}\nprint("tried", flush=True)\n`]
    case "perl":
      return [program.perl, "-e", `${perlPrelude}${source}\nprint "tried\\n";\n`]
    case "sh":
      return [program.sh, "-c", `${shellPrelude}${source}\necho tried\n`]
  }
}
/** A literal of JavaScript that Python and Perl read alike. */
export const quoted = (text: string): string => JSON.stringify(text)
