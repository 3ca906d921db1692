# Makes an image's root into what one set of programs may see. Runs once, as the last step of a build.
#
# Guarantees: program folders keep only the listed programs (and the links that lead to them); /etc keeps a short list
# of files that programs need; the folders of users, services and packages are empty; no file is setuid or setgid.
# Libraries and shared data stay. Fails, and with it the build, when a listed program is not in the image.
# Arguments: the numbers of the users it may run as, FIRST-LAST (and `,own` where the program and its folders are the image's), then the listed programs: absolute paths, or NAME=PATH where it is called by that name.
my ($users, @listed) = @ARGV;
my ($range, $own) = split /,/, $users;
my ($first, $last) = split /-/, $range;
my $passwd = join "", map { "tool:x:$_:$_:tool:/home/tool:/usr/sbin/nologin\n" } $first .. $last;
my $group = join "", map { "tool:x:$_:\n" } $first .. $last;
my %names = map { /^([^\/=]+)=(.*)$/ ? ($1, $2) : () } @listed;
my @programs = map { /^[^\/=]+=(.*)$/ ? $1 : $_ } @listed;
my @folders = grep { -d $_ && !-l $_ } qw(/bin /sbin /usr/bin /usr/sbin /usr/local/bin /usr/local/sbin /usr/games /usr/local/games);
my @emptied = grep { -d $_ && !-l $_ } (qw(/root /home /mnt /media /boot /var /run /tmp /usr/include /usr/lib/apt /usr/lib/dpkg /usr/lib/caisson), $own ? () : qw(/srv /opt /usr/src /usr/local/src));
my %configuration = map { ($_ => 1) } qw(alternatives fonts ld.so.cache ld.so.conf ld.so.conf.d localtime timezone locale.alias magic magic.mime
  mime.types os-release debian_version perl protocols python3 python3.9 python3.10 python3.11 python3.12 python3.13 rpc services ssl
  ca-certificates.conf terminfo xml sgml gai.conf ethertypes netconfig ImageMagick-6 ImageMagick-7 java-11-openjdk java-17-openjdk java-21-openjdk
  hosts hostname resolv.conf);

sub entries { opendir(my $dir, $_[0]) or return (); return grep { $_ ne "." && $_ ne ".." } readdir $dir }
sub erase {
  my ($path) = @_;
  if (-d $path && !-l $path) { erase("$path/$_") for entries($path); rmdir $path } else { unlink $path }
}
# The path with every link in its folders resolved, its last part left as it is.
sub place {
  my ($path, $hops) = @_;
  my $done = "";
  my @parts = grep { length } split m{/}, $path;
  my $last = pop @parts;
  for my $part (@parts) {
    my $next = "$done/$part";
    if (-l $next) {
      die "$path is a loop of links\n" if ++$hops > 16;
      my $link = readlink $next;
      $done = place(($link =~ m{^/} ? $link : "$done/$link") . "/.", $hops);
      $done =~ s{/\.$}{};
    } elsif ($part eq "..") { $done =~ s{/[^/]*$}{} } elsif ($part ne ".") { $done = $next }
  }
  return "$done/$last";
}
my %kept;
for my $program (@programs) {
  -x $program or die "the image has no program $program\n";
  my $at = $program;
  for (1 .. 16) {
    $at = place($at, 0);
    $kept{$at} = 1;
    last unless -l $at;
    my $link = readlink $at;
    ($at = $link =~ m{^/} ? $link : ($at =~ m{^(.*)/})[0] . "/$link");
  }
}
for my $folder (@folders) { for my $name (entries($folder)) { erase("$folder/$name") unless $kept{"$folder/$name"} } }
for my $name (entries("/etc")) { erase("/etc/$name") unless $configuration{$name} }
erase("/etc/ssl/private");
for my $folder (@emptied) { erase("$folder/$_") for entries($folder) }

sub put { my ($path, $text) = @_; open(my $file, ">", $path) or die "$path: $!\n"; print $file $text; close $file; chmod 0644, $path }
put("/etc/passwd", "root:x:0:0:root:/nonexistent:/usr/sbin/nologin\n${passwd}nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n");
put("/etc/group", "root:x:0:\n${group}nogroup:x:65534:\n");
put("/etc/nsswitch.conf", "passwd: files\ngroup: files\nhosts: files dns\nservices: files\nprotocols: files\nnetworks: files\n");
for my $path (qw(/workspace /home /home/tool /run /run/caisson /tmp /proc /dev /sys /var)) { mkdir $path, 0755 }
symlink "../tmp", "/var/tmp";
for my $name (keys %names) { symlink $names{$name}, "/usr/bin/$name" unless -e "/usr/bin/$name" }

sub plain {
  my ($path) = @_;
  my @stat = lstat $path or return;
  return if -l _;
  chmod($stat[2] & 0777, $path) if $stat[2] & 06000;
  if (-d _) { plain("$path/$_") for entries($path) }
}
plain("/usr"); plain("/etc");
plain($_) for grep { !-l $_ } qw(/bin /sbin /lib /lib64);
