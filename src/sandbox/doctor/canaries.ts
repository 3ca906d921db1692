/**
 * Programs that try what a sandbox must not allow, as text for perl, which every Debian system has.
 *
 * Each prints one JSON line per attempt: `{"control": …, "held": true|false, "saw": …}`. They are the same for every
 * backend. Pure.
 */
import { type SyscallName, syscallNumbers } from "../seccomp/rules.ts"

export interface Finding {
  readonly control: string
  readonly held: boolean
  readonly saw: string
}

const prelude = `
use strict; use warnings; use Socket; use Fcntl; use POSIX ();
sub say_it { my ($control, $held, $saw) = @_; $saw =~ s/[^ -~]/?/g; $saw =~ s/(["\\\\])/\\\\$1/g; printf qq({"control":"%s","held":%s,"saw":"%s"}\\n), $control, $held ? "true" : "false", $saw; }
sub must_fail { my ($control, $what, $result) = @_; say_it($control, !$result, $result ? "$what succeeded" : "$what: $!"); }
$| = 1;
`
const number = (name: SyscallName): number => syscallNumbers[name][process.arch === "arm64" ? 1 : 0] ?? -1

export interface Bait {
  /** a file of the host outside the workspace, and a word in it */
  readonly file: string
  /** a TCP port the host listens on at 127.0.0.1 */
  readonly port: number
  /** an abstract Unix socket the host listens on */
  readonly abstractName: string
  /** a program that the profile does not list */
  readonly unlisted: string
}

/** Everything that can be tried in one go without dying from it. */
export const attempts = (bait: Bait): string => `${prelude}
must_fail("reads-denied", "reading a file of the host", open(my $h, "<", ${JSON.stringify(bait.file)}));
for my $dir ("/root", "/home", "/var", "/run") { my @seen; if (opendir(my $d, $dir)) { @seen = grep { !/^\\.\\.?$/ && !/^(tool|caisson|tmp)$/ } readdir $d; } say_it("reads-denied", !@seen, @seen ? "$dir shows @seen" : "$dir shows nothing of the host"); }
for my $path ("/usr/lib/caisson-canary", "/etc/caisson-canary", "/caisson-canary", "/dev/caisson-canary", "/proc/sys/kernel/core_pattern") { must_fail("system-read-only", "writing $path", open(my $w, ">", $path)); }
{ socket(my $s, PF_INET, SOCK_STREAM, 0) or die; must_fail("network-isolated", "dialling the host's loopback", connect($s, sockaddr_in(${bait.port}, inet_aton("127.0.0.1")))); }
{ socket(my $s, PF_INET, SOCK_STREAM, 0) or die; must_fail("network-isolated", "dialling 192.0.2.1:443", connect($s, sockaddr_in(443, inet_aton("192.0.2.1")))); }
{ socket(my $s, PF_UNIX, SOCK_STREAM, 0) or die; must_fail("host-sockets-unreachable", "an abstract socket of the host", connect($s, pack_sockaddr_un("\\0" . ${JSON.stringify(bait.abstractName)}))); }
for my $family (17, 40, 38, 31) { must_fail("socket-families", "socket family $family", socket(my $s, $family, SOCK_STREAM, 0)); }
sub call_must_fail { my ($name, $nr, @args) = @_; my $result = syscall($nr, @args); must_fail("syscalls-refused", $name, $result >= 0); }
call_must_fail("ptrace", ${number("ptrace")}, 0, 0, 0, 0);
call_must_fail("mount", ${number("mount")}, "none", "/tmp", "tmpfs", 0, 0);
call_must_fail("unshare a user namespace", ${number("unshare")}, 0x10000000);
call_must_fail("bpf", ${number("bpf")}, 0, 0, 0);
call_must_fail("keyctl", ${number("keyctl")}, 0, 0, 0);
call_must_fail("userfaultfd", ${number("userfaultfd")}, 0);
call_must_fail("io_uring_setup", ${number("io_uring_setup")}, 1, 0);
call_must_fail("memfd_create", ${number("memfd_create")}, "x", 0);
call_must_fail("TIOCSTI", ${number("ioctl")}, 0, 0x5412, "x");
{ open(my $f, "<", "/proc/self/status") or die; my %s = map { /^(\\w+):\\s*(.*)$/ ? ($1, $2) : () } <$f>; say_it("capabilities-dropped", hex($s{CapEff}) == 0 && hex($s{CapBnd}) == 0 && hex($s{CapPrm}) == 0, "CapEff $s{CapEff}, CapBnd $s{CapBnd}"); say_it("no-new-privileges", $s{NoNewPrivs} eq "1", "NoNewPrivs $s{NoNewPrivs}"); say_it("seccomp-on", $s{Seccomp} eq "2", "Seccomp $s{Seccomp}"); }
{ my @extra; for my $fd (3 .. 255) { push @extra, $fd if defined fcntl_flags($fd); } sub fcntl_flags { my $r = POSIX::dup(shift); if (defined $r) { POSIX::close($r); return 1 } return undef } say_it("no-inherited-descriptors", !@extra, @extra ? "open: @extra" : "only 0, 1 and 2"); }
{ opendir(my $d, "/proc") or die; my @pids = grep { /^\\d+$/ } readdir $d; say_it("host-processes-hidden", @pids <= 3, scalar(@pids) . " processes visible"); }
must_fail("exec-restricted", "an unlisted program", -e ${JSON.stringify(bait.unlisted)});
{ open(my $w, ">", "/tmp/canary.sh") or die; print $w "#!/usr/bin/perl\\nexit 0\\n"; close $w; chmod 0755, "/tmp/canary.sh"; my $ran = !system { "/tmp/canary.sh" } "/tmp/canary.sh"; must_fail("exec-restricted", "running a file written by the tool", $ran); }
open(my $w, ">", "/workspace/canary") or die "no workspace"; print $w "x"; close $w; say_it("workspace-writable", -s "/workspace/canary", "written inside");
`
export const forks = `${prelude} my $pid = fork(); say_it("children-forbidden", 0, "fork answered " . (defined $pid ? $pid : "undef")); exit 0;`
export const eatsMemory = `${prelude} my @held; for (1 .. 4096) { push @held, "x" x 1048576; } say_it("memory-limit", 0, "4 GiB allocated"); exit 0;`
export const eatsProcesses = `${prelude} my $made = 0; for (1 .. 400) { my $pid = fork(); if (!defined $pid) { last } if ($pid == 0) { sleep 30; exit 0 } $made++; } say_it("process-limit", $made < 100, "$made processes made"); kill 9, -1; exit 0;`
export const eatsDisk = `${prelude} my $wrote = 0; for my $dir ("/workspace", "/tmp") { open(my $w, ">", "$dir/big") or next; for (1 .. 256) { my $n = syswrite($w, "x" x 1048576); last if !defined $n; $wrote += $n; } } say_it("disk-limit", $wrote < 100 * 1048576, "$wrote bytes written"); exit 0;`
export const neverEnds = `${prelude} $SIG{TERM} = "IGNORE"; $SIG{INT} = "IGNORE"; if (!fork()) { setpgrp; sleep 600 while 1; } sleep 600 while 1;`
export const floods = `${prelude} my $line = "x" x 65536; syswrite(STDOUT, $line) for 1 .. 64;`
export const asksForTerminal = `${prelude} say_it("terminal", -t STDIN && -t STDOUT, "isatty " . (-t STDOUT ? 1 : 0));`

export const parseFindings = (stdout: string): Finding[] =>
  stdout
    .split("\n")
    .filter((line) => line.startsWith("{"))
    .map((line) => JSON.parse(line) as Finding)
