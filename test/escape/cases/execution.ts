/** Running what the profile does not list, and child processes where there may be none. */
import { chmodSync, copyFileSync, writeFileSync } from "node:fs"
import type { EscapeCase } from "../escape-case.ts"

const childless = (name: string, source: string): EscapeCase => ({
  name,
  language: "python",
  source,
  profile: { children: false, spawn: {} },
  endings: ["exec-denied"],
  cutShort: true,
  denied: ["children_forbidden /usr/bin/python3"],
})
const copies = `
import shutil
def try_to_run(folder):
    made = folder + "/copy"
    shutil.copyfile("/usr/bin/true", made); os.chmod(made, 0o755)
    must_fail("running " + made, lambda: subprocess.run([made], check=True))
    must_fail("running it by the loader", lambda: subprocess.run([loader, made], check=True, stderr=subprocess.DEVNULL))
    must_fail("running it by descriptor", lambda: subprocess.run(["/proc/self/fd/%d" % os.open(made, 0)], check=True, close_fds=False))
    put(folder + "/script", "#!/usr/bin/sh\\nexit 0\\n"); os.chmod(folder + "/script", 0o755)
    must_fail("running a script", lambda: subprocess.run([folder + "/script"], check=True))
    os.unlink(made); os.unlink(folder + "/script")
loader = next(p for p in ("/lib64/ld-linux-x86-64.so.2", "/lib/ld-linux-aarch64.so.1") if os.path.exists(p))
`

export const execution: readonly EscapeCase[] = [
  {
    name: "a program copied to the workspace, /tmp, /dev/shm or the home does not run",
    language: "python",
    source: `${copies}
for folder in ("/workspace", "/tmp", "/dev/shm", "/home/tool", "/var/tmp"): try_to_run(folder)`,
  },
  {
    name: "a program that lay in the workspace already does not run",
    language: "sh",
    source: `must_fail ./planted
must_fail ./planted.sh
must_fail /lib64/ld-linux-x86-64.so.2 ./planted`,
    prepare({ workspace }) {
      copyFileSync("/usr/bin/true", `${workspace}/planted`)
      writeFileSync(`${workspace}/planted.sh`, "#!/usr/bin/sh\nexit 0\n")
      for (const name of ["planted", "planted.sh"]) chmodSync(`${workspace}/${name}`, 0o755)
    },
  },
  {
    name: "a program held in memory only does not run",
    language: "python",
    source: `
must_fail("memfd_create", lambda: call("memfd_create", b"x", 0)); must_fail("memfd_create exec", lambda: call("memfd_create", b"x", 0x10))
def nameless():
    try: return os.open("/tmp", os.O_TMPFILE | os.O_RDWR, 0o755)
    except OSError: pass # an overlay of Linux 6.1 makes none; one that lost its name is as good
    fd = os.open("/tmp/lost", os.O_CREAT | os.O_RDWR, 0o755); os.unlink("/tmp/lost"); return fd
fd = nameless(); os.write(fd, open("/usr/bin/true", "rb").read())
fd, writable = os.open("/proc/self/fd/%d" % fd, os.O_RDONLY), fd
os.close(writable); os.set_inheritable(fd, True)
must_fail("a nameless file", lambda: subprocess.run(["/proc/self/fd/%d" % fd], check=True, close_fds=False))
if os.fork() == 0:
    arguments = (ctypes.c_char_p * 2)(b"true", None)
    must_fail("execveat", lambda: call("execveat", fd, b"", arguments, 0, 0x1000)); os._exit(3)
_, status = os.wait()
if os.WEXITSTATUS(status) != 3: breach("execveat ran it")`,
  },
  {
    name: "a library that the program wrote is not loaded",
    language: "python",
    source: `
import shutil, glob
real = glob.glob("/usr/lib/*/libz.so.1*") or glob.glob("/usr/lib/*/libm.so.6")
shutil.copyfile(real[0], "/tmp/own.so")
must_fail("dlopen", lambda: ctypes.CDLL("/tmp/own.so"))
must_fail("mapping it executable", lambda: mmap.mmap(os.open("/tmp/own.so", os.O_RDONLY), 4096, flags=mmap.MAP_PRIVATE, prot=mmap.PROT_READ | mmap.PROT_EXEC))
done = subprocess.run(["/usr/bin/env", "LD_PRELOAD=/tmp/own.so", "/usr/bin/cat", "/proc/self/maps"], capture_output=True, text=True)
if any("/tmp/own.so" in line and "x" in line.split()[1] for line in done.stdout.splitlines()): breach("the preloaded library can run")`,
  },
  {
    name: "programs that are not listed are not there, by any name",
    language: "python",
    source: `
for name in ("su", "sudo", "mount", "umount", "passwd", "chsh", "newgrp", "unshare", "nsenter", "bwrap", "gdb", "strace", "gcc", "bash", "ssh", "nc", "ip", "systemctl", "docker", "crontab", "at", "git", "node"):
    for folder in ("/usr/bin", "/bin", "/usr/sbin", "/sbin", "/usr/local/bin", "/usr/games"):
        if os.path.lexists(folder + "/" + name): breach(folder + "/" + name + " is there")
    must_fail("running " + name, lambda: subprocess.run([name, "--version"], capture_output=True))
loader = next(p for p in ("/lib64/ld-linux-x86-64.so.2", "/lib/ld-linux-aarch64.so.1") if os.path.exists(p))
must_fail("bash by the loader", lambda: subprocess.run([loader, "/usr/bin/bash", "-c", "true"], check=True, stderr=subprocess.DEVNULL))`,
  },
  {
    name: "a setuid copy gains nothing where it is made and is never committed",
    language: "python",
    source: `
import shutil
for folder in ("/tmp", "/workspace"):
    shutil.copyfile("/usr/bin/id", folder + "/suid"); may_fail(lambda: os.chmod(folder + "/suid", 0o6755))
    must_fail("running it", lambda: subprocess.run([folder + "/suid"], check=True))`,
    commit: true,
    effects: ["create"],
    breaches: ({ exited }) =>
      exited.writes.effects.every(({ refused }) => refused !== undefined) ? [] : ["a setuid file may be committed"],
  },
  childless("a childless program that forks is ended", "os.fork()\nbreach('forked')"),
  childless(
    "a childless program that uses vfork is ended",
    "call('vfork') if NR['vfork'] >= 0 else os.fork()\nbreach('forked')",
  ),
  childless("a childless program that uses clone directly is ended", "call('clone', 17, 0, 0, 0, 0)\nbreach('cloned')"),
  childless(
    "a childless program that uses posix_spawn is ended",
    "os.posix_spawn('/usr/bin/python3', ['python3', '-c', '0'], {})\nbreach('spawned')",
  ),
  childless("a childless program that uses system() is ended", "os.system('true')\nbreach('ran a shell')"),
  childless(
    "a childless program that asks for subprocess is ended",
    "subprocess.run(['/usr/bin/python3', '-c', '0'])\nbreach('spawned')",
  ),
  childless(
    "a childless program whose thread forks is ended",
    "t = threading.Thread(target=os.fork); t.start(); t.join()\nbreach('forked')",
  ),
  {
    name: "a childless program gets no child by clone3 either, and may have threads",
    language: "python",
    source: `
must_fail("clone3", lambda: call("clone3", struct.pack("=11Q", 0, 0, 0, 0, 17, 0, 0, 0, 0, 0, 0), 88))
done = []
t = threading.Thread(target=lambda: done.append(1)); t.start(); t.join()
if not done: breach("threads do not work")`,
    profile: { children: false, spawn: {} },
  },
]
