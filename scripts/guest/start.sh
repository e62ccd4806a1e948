#!/bin/sh
# Runs the tests of the guest, first as root and then as an ordinary user with delegated control groups, and turns the
# guest off. The last line of the console is the status.
# usage: start.sh CHECKOUT NODE FILE...
checkout=$1 node=$2
shift 2
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8 CI=1 NO_COLOR=1
uid=1000 groups=/sys/fs/cgroup

mount -t proc proc /proc
mount -t sysfs sys /sys
mkdir -p /dev/pts /dev/shm
mount -t devpts devpts /dev/pts
mount -t tmpfs -o mode=1777 shm /dev/shm
mount -t cgroup2 -o nsdelegate cgroup2 "$groups"
ip link set lo up
# An ordinary user may have no way into a checkout below /root.
folder=$checkout
while [ "$folder" != / ]; do chmod o+rx "$folder"; folder=$(dirname "$folder"); done
cd "$checkout"

# Node's own test runner: it starts within seconds on an emulated processor.
tests="$node --test --test-isolation=none --test-reporter=spec --test-timeout=300000 $*"
$tests
as_root=$?

echo "+memory +pids +cpu" >"$groups/cgroup.subtree_control"
mkdir "$groups/delegated"
for file in "" /cgroup.procs /cgroup.subtree_control /cgroup.threads; do chown "$uid:$uid" "$groups/delegated$file"; done
home=$(mktemp -d)
chown "$uid:$uid" "$home"
(
  echo 0 >"$groups/delegated/cgroup.procs"
  export HOME=$home
  exec setpriv --reuid="$uid" --regid="$uid" --clear-groups -- $tests
)
as_user=$?

status=0
[ "$as_root" = 0 ] && [ "$as_user" = 0 ] || status=1
echo "sluice-guest: ended with $status"
sync
echo o >/proc/sysrq-trigger
sleep 60
