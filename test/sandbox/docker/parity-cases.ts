/** Programs whose verdicts must not tell the backends apart: how they end, what they are denied, what they write. */
import type { ProfileOverrides } from "../../support/sealed.ts"

export interface ParityCase {
  readonly name: string
  readonly argv: readonly string[]
  readonly overrides?: ProfileOverrides
  readonly before?: string
  readonly stdin?: string
  /** its output may differ (numbers, timings) and is not compared */
  readonly quiet?: true
}

const sh = (
  name: string,
  script: string,
  overrides?: ProfileOverrides,
  more: Partial<ParityCase> = {},
): ParityCase => ({
  name,
  argv: ["/usr/bin/sh", "-c", script],
  ...(overrides === undefined ? {} : { overrides }),
  ...more,
})
const perl = (
  name: string,
  source: string,
  overrides?: ProfileOverrides,
  more: Partial<ParityCase> = {},
): ParityCase => ({
  name,
  argv: ["/usr/bin/perl", "-e", source],
  ...(overrides === undefined ? {} : { overrides }),
  ...more,
})
const mebibyte = 2 ** 20
const dial = (address: string, port: number): string =>
  `use IO::Socket::INET; print IO::Socket::INET->new(PeerAddr => "${address}", PeerPort => ${port}, Timeout => 3) ? "reached" : "no: $!"`

export const parityCases: readonly ParityCase[] = [
  sh("exit 0", "exit 0"),
  sh("exit 3", "echo out; echo err >&2; exit 3"),
  sh("exit 255", "exit 255"),
  sh("death by SIGTERM", "kill -TERM $$"),
  sh("death by SIGKILL", "kill -KILL $$"),
  sh("death by SIGSEGV", "kill -SEGV $$"),
  perl("abort", "kill ABRT => $$; sleep 1"),
  sh("input", "cat", undefined, { stdin: "some input\nwith lines" }),
  sh("a closed output", "exec >&-; echo x; true"),
  sh("environment", "env", { env: { PATH: "/usr/bin", A: "1", B: "two words" } }),
  perl("environment as the program gets it", 'print map { "$_=$ENV{$_}\\n" } sort keys %ENV', {
    env: { PATH: "/usr/bin", A: "1", PWD: "/elsewhere" },
  }),
  sh("streams opened again", "echo out > /dev/stdout; echo err > /dev/stderr; cat /dev/stdin", undefined, {
    stdin: "in\n",
  }),
  sh("streams by their numbers", "echo out > /proc/self/fd/1; echo err > /dev/fd/2; cat < /proc/self/fd/0", undefined, {
    stdin: "in\n",
  }),
  perl(
    "kinds of the streams",
    'for (0 .. 2) { my $to = readlink "/proc/self/fd/$_"; $to =~ s/\\d+/N/g; print "$to\\n" }',
  ),
  perl("descriptors", "opendir my $d, '/proc/self/fd'; print join ' ', sort readdir $d"),
  sh("user", "id"),
  perl(
    "limits of the process",
    "open my $f, '<', '/proc/self/limits'; print grep { /open files|core|file size/ } <$f>",
  ),
  perl(
    "capabilities and filters",
    "open my $f, '<', '/proc/self/status'; print grep { /^(Cap|NoNewPrivs|Seccomp:)/ } <$f>",
  ),
  perl("top of the tree", "print map { \"$_\\n\" } grep { $_ ne '/sys' } sort glob '/*'"),
  sh("folders of the system", "ls -A /etc /run /var /home /dev/shm /tmp"),
  sh("the folder /sys", "ls -A /sys"),
  perl("memory that may be locked", "open my $f, '<', '/proc/self/limits'; print grep { /locked/ } <$f>"),
  sh("modes of its places", "stat -c '%n %a %F' / /workspace /tmp /home/tool /dev/shm /etc"),
  perl(
    "low port",
    "use IO::Socket::INET; print IO::Socket::INET->new(Listen => 1, LocalAddr => '127.0.0.1:80') ? 'bound' : \"no: $!\"",
  ),
  perl("ping socket", "my $r = syscall(41, 2, 2, 1); print $r >= 0 ? 'made' : \"no: $!\""),
  sh("folder and home", "pwd; echo $HOME; cd ~ && pwd; ls -A"),
  sh("unlisted program", "/usr/bin/id; id", { spawn: { cat: "/usr/bin/cat" } }),
  sh("own program", "printf '#!/usr/bin/sh\\necho ran\\n' > tool; chmod +x tool; ./tool"),
  sh("own program in /tmp", "printf '#!/usr/bin/sh\\necho ran\\n' > /tmp/tool; chmod +x /tmp/tool; /tmp/tool"),
  sh("copied binary", "cat /usr/bin/true > t; chmod +x t; ./t; echo $?"),
  perl("child where none is allowed", "fork; print 1", { children: false }),
  perl("thread-free program where no child is allowed", "print 1", { children: false }),
  sh("deadline", "sleep 60", { limits: { wallMs: 600 } }),
  perl("memory", "my @a; push @a, 'x' x 1048576 for 1 .. 8192", {
    limits: { memoryBytes: 64 * mebibyte, diskBytes: 8 * mebibyte },
  }),
  perl(
    "processes",
    "while (1) { my $p = fork; exit 9 unless defined $p; if (!$p) { sleep 30; exit } }",
    { limits: { pids: 12 } },
    { quiet: true },
  ),
  sh("disk, workspace", "dd if=/dev/zero of=big bs=1048576 count=64 2>/dev/null", {
    limits: { diskBytes: 4 * mebibyte },
  }),
  sh("disk, /tmp", "dd if=/dev/zero of=/tmp/big bs=1048576 count=64 2>/dev/null", {
    limits: { diskBytes: 4 * mebibyte },
  }),
  sh("disk, /dev/shm", "dd if=/dev/zero of=/dev/shm/big bs=1048576 count=64 2>/dev/null", {
    limits: { diskBytes: 4 * mebibyte },
  }),
  perl("processor time", "1 while 1", { limits: { cpuMs: 300 } }),
  perl("long output", "print 'x' x 1000 for 1 .. 1000", { limits: { outputBytes: 5000 } }),
  perl("a flood", "my $x = 'y' x 65536; print $x while 1", { limits: { outputBytes: 5000 } }, { quiet: true }),
  perl("a terminal", "print -t STDIN ? 1 : 0, -t STDOUT ? 1 : 0", { tty: true }),
  sh("leaves a process behind", "sleep 60 >/dev/null 2>&1 & echo left"),
  perl("dials an address", dial("192.0.2.1", 443)),
  perl("dials the metadata address", dial("169.254.169.254", 80)),
  perl("dials its own loopback", dial("127.0.0.1", 9)),
  perl("asks for a name", "print scalar(gethostbyname('secret.evil.test')) ? 'known' : 'unknown'", {
    network: { proxyPort: 3128, transparentPorts: [], dns: false },
  }),
  perl("dials with a channel open", dial("192.0.2.7", 8080), {
    network: { proxyPort: 3128, transparentPorts: [443], dns: true },
  }),
  ...[1, 2, 10, 16, 17, 31, 38, 40, 44].map((family) =>
    perl(
      `socket family ${family}`,
      `my $r = syscall(41, ${family}, ${family === 16 ? 3 : 1}, 0); print $r >= 0 ? "made" : "no: $!"`,
    ),
  ),
  ...Object.entries({
    ptrace: 101,
    mount: 165,
    umount: 166,
    chroot: 161,
    unshare: 272,
    setns: 308,
    bpf: 321,
    keyctl: 250,
    userfaultfd: 323,
    io_uring: 425,
    memfd: 319,
    perf: 298,
    reboot: 169,
    swapon: 167,
    init_module: 175,
    kexec: 246,
    sethostname: 170,
    iopl: 172,
    acct: 163,
    quotactl: 179,
    syslog: 103,
    handle: 304,
    personality: 135,
    move_pages: 279,
    fanotify: 300,
  }).map(([name, number]) =>
    perl(
      `system call ${name}`,
      `my $b = "\\0" x 128; my $r = syscall(${number}, ${name === "personality" ? "0x0400000" : "0"}, $b, $b, $b, $b); print $r >= 0 ? "done" : "no: $!"`,
    ),
  ),
  perl(
    "new user namespace by clone",
    "my $r = syscall(56, 0x10000000 | 17, 0, 0, 0, 0); exit 0 if $r == 0; print $r > 0 ? 'made' : \"no: $!\"",
  ),
  sh("reads the host's secrets", "cat /etc/shadow /root/.bashrc /var/log/dpkg.log; ls -A /root /home /var /srv /mnt"),
  sh("writes the system", "echo x > /usr/x; echo x > /etc/x; echo x > /x; echo x > /proc/sys/kernel/hostname; true"),
  sh(
    "hidden by the view",
    "cat private/key; cat open",
    { view: { read: ["**"], deny: ["private/**", "private"] } },
    { before: "mkdir private; echo k > private/key; echo o > open" },
  ),
  sh(
    "only what it may read",
    "cat a/x; cat b/x",
    { view: { read: ["a/**"], deny: [] }, write: [] },
    { before: "mkdir a b; echo a > a/x; echo b > b/x" },
  ),
  sh("files of the host", "cat /run/caisson/a; echo x > /run/caisson/a", {
    files: { "/run/caisson/a": Buffer.from("content\n") },
  }),
  sh("setuid bit", "cp /usr/bin/true s; chmod 4755 s"),
  sh("fifo", "mkfifo f"),
  sh("symlink out", "ln -s /etc/passwd out; ln -s ../../x up"),
  perl("device", "my $p = 'dev'; my $r = syscall(259, -100, $p, 0020600, 0x103); print $r == 0 ? 'made' : \"no: $!\""),
]
