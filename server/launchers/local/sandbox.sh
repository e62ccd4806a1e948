#!/bin/sh
# Builds a workspace's own view of the machine and becomes the given command in it, without any privilege.
# Runs as first process of new mount, pid, ipc and network namespaces, with the right to change them.
# usage: sandbox.sh ROOT UID USERNS PYTHON TASKS SHM PORT OPERATION... -- COMMAND...
#   ROOT       an empty folder of the host that becomes the mount point of the new root
#   UID        the host's user id to run as, or "same"
#   USERNS     "yes": end in a user namespace of its own as user 1000
#   PYTHON     an interpreter that no tenant can write; it runs with the rights of the installation
#   TASKS      limit of processes and threads, or "any"
#   SHM        bytes of /dev/shm, also the limit of System V shared memory
#   PORT       first of the ports on which egress-forward.py listens
#   OPERATION  ro SOURCE TARGET | rw SOURCE TARGET | ro-folder SOURCE TARGET | rw-folder SOURCE TARGET
#              tmpfs BYTES TARGET | link TEXT TARGET | dir TARGET
#              The source of ro-folder and rw-folder is left out with a line where its path holds a link.
set -eu
root=$1 uid=$2 userns=$3 python=$4 tasks=$5 shm=$6 port=$7
shift 7

place() { # makes the mount point $2 for the source $1
  if [ -d "$1" ]; then mkdir -p "$root$2"; else mkdir -p "$root${2%/*}" && : >"$root$2"; fi
}
restrict() { # mounts $2 again with the flag $1, "ro" or "rw", and without set-uid programs and devices
  # A flag that the source's own mount has and that we may not drop must be named again.
  mount -o "remount,bind,$1,nosuid,nodev" "$2" 2>/dev/null || mount -o "remount,bind,$1,nosuid,nodev,noexec" "$2"
}

memory_files() { # a tmpfs of $1 bytes at $2; each file also costs the kernel about 1 KiB, outside the size
  mount -t tmpfs -o "mode=1777,nosuid,nodev,size=$1,nr_inodes=$((1024 + $1 / 16384))" sluice "$2"
}

umask 022
# pivot_root is not on the path of ordinary users.
PATH=$PATH:/usr/sbin:/sbin
mount -t tmpfs -o mode=0755,nosuid,nodev,size=4m sluice "$root"
while [ "$1" != "--" ]; do
  case $1 in
    ro | rw) place "$2" "$3"; mount --bind "$2" "$root$3"; restrict "$1" "$root$3"; shift 3 ;;
    ro-folder | rw-folder)
      mkdir -p "$root$3"
      if reason=$("$python" -I -S "${0%/*}/bind-folder.py" "$2" "$root$3" 2>&1); then
        restrict "${1%-folder}" "$root$3"
      else
        rmdir "$root$3"
        echo "$3 is left out: its folder was exchanged or removed during the start ($reason)." >&2
      fi
      shift 3
      ;;
    tmpfs) mkdir -p "$root$3"; memory_files "$2" "$root$3"; shift 3 ;;
    link) mkdir -p "$root${3%/*}"; ln -s "$2" "$root$3"; shift 3 ;;
    dir) mkdir -p "$root$2"; shift 2 ;;
    *) echo "sandbox: unknown operation $1" >&2; exit 64 ;;
  esac
done
shift

mkdir -p "$root/proc" "$root/dev"
mount -t proc -o nosuid,nodev,noexec proc "$root/proc"
mount -t tmpfs -o mode=0755,nosuid,size=1m,nr_inodes=256 dev "$root/dev"
for name in null zero full random urandom tty; do
  : >"$root/dev/$name"
  mount --bind "/dev/$name" "$root/dev/$name"
done
# JAX takes the CPU, without a word, where no device file of NVIDIA's exists; it only looks whether there is one.
: >"$root/dev/nvidiactl"
# Names of the keys of all processes with the same user id, without root those of other workspaces.
for name in keys key-users; do
  [ ! -e "$root/proc/$name" ] || mount --bind /dev/null "$root/proc/$name"
done
mkdir "$root/dev/pts" "$root/dev/shm"
mount -t devpts -o newinstance,ptmxmode=0666,mode=0620 devpts "$root/dev/pts"
memory_files "$shm" "$root/dev/shm"
# Pages of 4 KiB. Messages are kernel memory; a queue holds 16 KiB. Before Linux 6.9 only root may set the limits.
(echo "$((shm / 4096))" >"$root/proc/sys/kernel/shmall") 2>/dev/null || true
(echo 256 >"$root/proc/sys/kernel/msgmni") 2>/dev/null || true
# The kernel lets the user who made a namespace change its settings. Without root, that is the workspace's user.
for name in kernel net fs; do
  mount --bind "$root/proc/sys/$name" "$root/proc/sys/$name"
  restrict ro "$root/proc/sys/$name"
done
ln -s pts/ptmx "$root/dev/ptmx"
ln -s /proc/self/fd "$root/dev/fd"
ln -s /proc/self/fd/0 "$root/dev/stdin"
ln -s /proc/self/fd/1 "$root/dev/stdout"
ln -s /proc/self/fd/2 "$root/dev/stderr"

# The network is a loopback of its own and nothing else.
"$python" -I -S "${0%/*}/own-network.py" "$port"

mkdir "$root/.host"
cd "$root"
pivot_root . .host
cd /
umount -l /.host
rmdir /.host
mount -o remount,bind,ro,nosuid,nodev /

# Before the last user namespace is made: the kernel counts tasks by namespace, up to the limit of its maker.
[ "$tasks" = any ] || prlimit --pid "$$" --nproc="$tasks:$tasks"

# From here on there is no way back: no capability, no set-uid program, nothing of the host below any path.
set -- setpriv --bounding-set=-all --inh-caps=-all --ambient-caps=-all --no-new-privs -- "$@"
if [ "$uid" = same ] || [ "$userns" = yes ]; then
  # In a user namespace of its own a program would be root: it could mount file systems in memory, which no limit counts,
  # and reach parts of the kernel that only root reaches. The limit belongs to the namespace that it is written in.
  set -- unshare --user --map-user=1000 --map-group=1000 --keep-caps -- \
    sh -c 'echo 0 >/proc/sys/user/max_user_namespaces && exec "$@"' sh "$@"
fi
# Without root we are root of our own user namespace; the kernel lets only a process with all rights there map it into
# another.
[ "$uid" = same ] || set -- setpriv --reuid="$uid" --regid="$uid" --clear-groups --bounding-set=-all \
  --inh-caps=-all --ambient-caps=-all --no-new-privs -- "$@"
exec "$@"
