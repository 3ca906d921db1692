/**
 * What a program in a container must not be able to do there, beyond what every sandbox refuses, as one perl text.
 *
 * Each attempt prints a line `control TAB held|broken TAB what was seen`. A control that says nothing is broken.
 */
import type { ControlReport } from "../backend.ts"

export const containerControls = [
  "engine-socket-absent",
  "cgroup-release-agent",
  "sysrq",
  "core-pattern",
  "device-nodes",
  "read-only-root",
  "kernel-interfaces",
  "bridge-hidden",
  "bridge-untouchable",
  "capabilities-none",
  "filters-loaded",
  "single-network-device",
] as const

export const containerCanaries = String.raw`
sub say_ { my ($control, $held, $saw) = @_; print "$control\t" . ($held ? "held" : "broken") . "\t$saw\n" }
sub writes { my ($path) = @_; open(my $file, ">>", $path) or return "$path: $!"; return "" }
my @sockets = grep { -e $_ } qw(/var/run/docker.sock /run/docker.sock /run/podman/podman.sock /run/containerd/containerd.sock);
say_("engine-socket-absent", !@sockets, @sockets ? "@sockets" : "no engine socket");
my @agents = grep { writes($_) eq "" } glob("/sys/fs/cgroup/*/release_agent /sys/fs/cgroup/release_agent /sys/fs/cgroup/*/*/release_agent");
say_("cgroup-release-agent", !@agents, @agents ? "@agents" : "no release_agent can be written");
my $sysrq = writes("/proc/sysrq-trigger"); say_("sysrq", $sysrq ne "", $sysrq || "writable");
my $core = writes("/proc/sys/kernel/core_pattern"); say_("core-pattern", $core ne "", $core || "writable");
my $node = "/tmp/node"; my $mknod = syscall(${process.arch === "arm64" ? 33 : 259}, -100, $node, 060000 | 0600, 259 << 8);
my $refusal = "$!"; my @disks = grep { -b $_ } glob("/dev/*");
say_("device-nodes", $mknod != 0 && !@disks, @disks ? "@disks" : $mknod == 0 ? "a block device was made" : "mknod: $refusal");
my @open = grep { writes("$_/canary") eq "" } qw(/ /etc /usr /run /run/caisson /var /home /dev);
say_("read-only-root", !@open, @open ? "@open" : "every folder outside the call's own refuses files");
my @kernel = grep { my ($file, $byte); open($file, "<", $_) && sysread($file, $byte, 1) } qw(/proc/kcore /proc/kallsyms /proc/keys /proc/interrupts /sys/kernel/uevent_seqnum /proc/timer_list /sys/kernel/notes /sys/firmware/dmi/tables/DMI);
say_("kernel-interfaces", !@kernel, @kernel ? "@kernel" : "masked");
my @left = grep { -e $_ } qw(/run/caisson/code/perl /run/caisson/code/bridge.pl /run/caisson/pipes/job /run/caisson/pipes/status);
say_("bridge-hidden", !@left, @left ? "@left" : "neither its program nor its pipes are there");
my $killed = kill(9, 1); my $fds = opendir(my $dir, "/proc/1/fd"); my $memory = open(my $mem, "<", "/proc/1/mem"); my $environment = open(my $env, "<", "/proc/1/environ");
say_("bridge-untouchable", kill(0, 1) && !$fds && !$memory && !$environment, "signals are ignored; /proc/1/fd: " . ($fds ? "open" : "refused"));
open(my $status, "<", "/proc/self/status"); my %status = map { /^(\w+):\s+(.*)$/ ? ($1, $2) : () } <$status>;
my @caps = grep { $status{$_} !~ /^0+$/ } qw(CapInh CapPrm CapEff CapBnd CapAmb);
say_("capabilities-none", !@caps && $status{NoNewPrivs} == 1, @caps ? "@caps" : "none, in any set; no_new_privs");
say_("filters-loaded", $status{Seccomp} == 2 && (!defined $status{Seccomp_filters} || $status{Seccomp_filters} >= 2), "seccomp mode $status{Seccomp}, filters " . ($status{Seccomp_filters} // "?"));
open(my $devices, "<", "/proc/net/dev"); my @devices = map { /^\s*([\w.]+):/ ? $1 : () } <$devices>;
my @others = grep { $_ ne "lo" && !/^(tunl|sit|ip6tnl|gre|gretap|erspan|ip_vti|ip6_vti|ip6gre|dummy)/ } @devices;
say_("single-network-device", !@others, "@devices");
`

export const parseContainerFindings = (text: string): ControlReport[] => {
  const said = new Map<string, { held: boolean; saw: string }>()
  for (const line of text.split("\n")) {
    const [control, word, saw] = line.split("\t")
    if (control !== undefined && saw !== undefined) said.set(control, { held: word === "held", saw })
  }
  return containerControls.map((control) => {
    const found = said.get(control)
    if (found?.held === true) return { control, state: "enforced", evidence: found.saw }
    return {
      control,
      state: "absent",
      evidence: found?.saw ?? "the canary said nothing",
      fix: "do not run untrusted tools with this engine; report this with the output of `caisson doctor --json`",
    }
  })
}
