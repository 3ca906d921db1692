# The first process of a sandbox container: it parks, runs one job, reports how that ended, and is gone.
#
# Guarantees: nothing of the job is known before the host sends it; the program gets exactly the argument list,
# environment, folder, limits and system-call filter of the job, and no descriptor but its three streams and, where the
# job says so, its two private pipes (3 to read, 4 to write); every process of the container is dead before the ending is reported; the tool cannot signal, read or impersonate
# this process (it is process 1 and not dumpable, and its own descriptors close on exec).
# Assumes: it is process 1 of its own process namespace, not root, with no_new_privs; perl needs no module.
# Arguments: the folder with the named pipes job and status (a terminal, where the job wants one, lies beside that
# folder), and the numbers of the system calls prctl, setsid, prlimit64, pidfd_open and dup3 on this machine.
# The program's streams are pipes without a name, made here; the host takes its ends by their numbers, told at once.
my ($dir, $prctl, $setsid, $prlimit, $pidfd_open, $dup3) = @ARGV;
$_ += 0 for $prctl, $setsid, $prlimit, $pidfd_open, $dup3;
my ($PR_SET_DUMPABLE, $PR_SET_SECCOMP, $MODE_FILTER, $TIOCSCTTY) = (4, 22, 2, 0x540e);

sub report { syswrite STATUS, "$_[0]\n" }
sub bail { report("F $_[0]: " . ($! + 0)); exit 125 }

# While parked it ends when it is asked to. Later it does not: the tool could ask, and process 1 hears only what it handles.
$SIG{TERM} = sub { exit 0 };
syscall($prctl, $PR_SET_DUMPABLE, 0, 0, 0, 0) == 0 or exit 125;
# The folder beside the pipes stays reachable as the working folder when the host covers it.
chdir("$dir/..") or exit 125;
# Nothing else may lie where the program's private pipes go.
sysopen(THREE, "$dir", 0) && sysopen(FOUR, "$dir", 0) && fileno(THREE) == 3 && fileno(FOUR) == 4 or exit 125;
sysopen(STATUS, "$dir/status", 1) or exit 125;
sysopen(JOB, "$dir/job", 0) or bail("job");
pipe(IN, TO_IN) && pipe(FROM_OUT, OUT) && pipe(FROM_ERR, ERR) or bail("pipes");
pipe(TOLD, TELL) && pipe(HEARD, SAY) or bail("pipes");
report(join(" ", "R", map { fileno($_) } TO_IN, FROM_OUT, FROM_ERR, TELL, HEARD));

sub take {
  my ($count, $bytes) = ($_[0], "");
  while (length($bytes) < $count) {
    my $got = sysread(JOB, $bytes, $count - length($bytes), length($bytes));
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
my ($tty, $private) = (number(), number());

$SIG{TERM} = "DEFAULT";
close $_ for TO_IN, FROM_OUT, FROM_ERR, TELL, HEARD;
my $child = fork();
bail("fork") unless defined $child;
if ($child == 0) {
  syscall($setsid);
  if ($tty) {
    sysopen(TTY, "tty", 2) or bail("tty");
    ioctl(TTY, $TIOCSCTTY, 0);
    open(STDIN, "<&TTY") && open(STDOUT, ">&TTY") && open(STDERR, ">&TTY") or bail("streams");
  } else {
    open(STDIN, "<&IN") && open(STDOUT, ">&OUT") && open(STDERR, ">&ERR") or bail("streams");
  }
  if ($private) {
    syscall($dup3, fileno(TOLD), 3, 0) == 3 && syscall($dup3, fileno(SAY), 4, 0) == 4 or bail("private pipes");
  }
  chdir($folder) or bail("folder");
  %ENV = map { /^([^=]*)=(.*)$/s ? ($1, $2) : () } @env;
  for my $limit (@limits) {
    my ($resource, @values) = unpack("VQ<Q<", $limit);
    syscall($prlimit, 0, $resource, pack("QQ", @values), 0) == 0 or bail("limit");
  }
  umask 022;
  if (length $filter) {
    my $prog = pack("S x6 P", length($filter) / 8, $filter);
    syscall($prctl, $PR_SET_SECCOMP, $MODE_FILTER, $prog, 0, 0) == 0 or bail("filter");
  }
  exec { $program } @argv;
  report("X " . ($! + 0));
  exit 127;
}
close $_ for IN, OUT, ERR, TOLD, SAY;

# Wait for the program to end or for the host to say stop: a byte on the job pipe, or its end when the host is gone.
my $pidfd = syscall($pidfd_open, $child, 0);
bail("pidfd") if $pidfd < 0;
my ($ending, $wanted) = (undef, "");
vec($wanted, $_, 1) = 1 for $pidfd, fileno(JOB);
until (defined $ending) {
  my $ready = $wanted;
  select($ready, undef, undef, 1);
  while ((my $gone = waitpid(-1, 1)) > 0) { $ending = $? if $gone == $child }
  if (vec($ready, fileno(JOB), 1)) { sysread(JOB, my $stop, 1); last }
}
# Process 1 cannot miss one: a fork under way when the signal comes is undone by the kernel.
do { kill 9, -1; $gone = waitpid(-1, 0); $ending = $? if $gone == $child } while $gone > 0;
report("S $ending");
# The host reads what the control group counted before this process, and with it the group, goes away.
sysread(JOB, my $rest, 1);
exit 0;
