# Waits inside a sandbox of the namespace backend for one job, and becomes its program.
#
# Guarantees: nothing of the job is known before the host sends it; the program gets exactly the argument list,
# environment, folder and limits of the job, in this very process, so that nothing of this one is left beside it; its own
# two descriptors are closed by then, and its folder is left, which the workspace covers meanwhile. That the program runs is told by the end of the door: it closes on exec.
# Assumes: namespaces, mounts, capabilities and the system-call filter are in force already, and the masks over /proc
# before the job comes; perl needs no module.
# A program that waits for its call itself gets the door, by its number, as its last argument.
# A job that is observed has a filter: its listener is told at the door, and nothing goes on before the host has taken it.
# Arguments: the descriptors of the door and of the interpreter, and the numbers of the system calls setsid, prlimit64 and
# seccomp on this machine.
my ($door, $own, $setsid, $prlimit, $seccomp) = map { $_ + 0 } @ARGV;
my ($F_DUPFD, $F_SETFD, $FD_CLOEXEC, $TIOCSCTTY) = (0, 2, 1, 0x540e);

open(DOOR, "+<&=", $door) && fcntl(DOOR, $F_SETFD, $FD_CLOEXEC) or exit 125;
open(OWN, "<&=", $own) && close(OWN) or exit 125;
sub bail { syswrite DOOR, "F $_[0]: " . ($! + 0) . "\n"; exit 125 }
syswrite DOOR, "R\n";

sub take {
  my ($count, $bytes) = ($_[0], "");
  while (length($bytes) < $count) {
    my $got = sysread(DOOR, $bytes, $count - length($bytes), length($bytes));
    exit 0 unless $got;
  }
  return $bytes;
}
my $wire = take(unpack("V", take(4)));
my $at = 0;
sub number { my $value = unpack("V", substr($wire, $at, 4)); $at += 4; return $value }
sub field { my $length = number(); my $bytes = substr($wire, $at, $length); $at += $length; return $bytes }
sub fields { my $count = number(); return map { field() } 1 .. $count }

my ($program, $folder, $filter) = (field(), field(), field());
my @argv = fields();
my @env = fields();
my @limits = fields();
my $tty = number();
number();
my $waits = number();

if ($tty) {
  syscall($setsid);
  sysopen(TTY, "terminal", 2) && ioctl(TTY, $TIOCSCTTY, 0) or bail("terminal");
  open(STDIN, "<&TTY") && open(STDOUT, ">&TTY") && open(STDERR, ">&TTY") && close(TTY) or bail("streams");
}
chdir($folder) or bail("folder");
%ENV = map { /^([^=]*)=(.*)$/s ? ($1, $2) : () } @env;
for my $limit (@limits) {
  my ($resource, @values) = unpack("VQ<Q<", $limit);
  syscall($prlimit, 0, $resource, pack("QQ", @values), 0) == 0 or bail("limit");
}
if (length $filter) {
  my $listener = syscall($seccomp, 1, 8, pack("S x6 P", length($filter) / 8, $filter));
  $listener >= 0 or bail("observe");
  syswrite DOOR, "O $listener\n";
  take(1);
}
if ($waits) {
  fcntl(DOOR, $F_SETFD, 0) or bail("door");
  # Node closes what it was given on the next exec, up to descriptor 15: the private two once more, for one that begins anew.
  open(TO, "<&=", 3) && open(FROM, ">&=", 4) or bail("pipes");
  for my $pipe (*TO, *FROM) { fcntl($pipe, $F_DUPFD, 60) && fcntl($pipe, $F_SETFD, 0) or bail("pipes") }
}
exec { $program } @argv;
syswrite DOOR, "X " . ($! + 0) . "\n";
exit 127;
