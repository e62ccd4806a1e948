#!/busybox sh
# First program of the guest. Mounts the host's files below a file system in memory, and becomes the program of the
# kernel's command line in it.
set -e
b=/busybox
$b mkdir -p /dev /host /memory /root
$b mount -t devtmpfs dev /dev
for module in /modules/*; do $b insmod "$module"; done
$b mount -t 9p -o trans=virtio,version=9p2000.L,ro,msize=524288,cache=loose host /host
$b mount -t tmpfs -o size=50% memory /memory
$b mkdir /memory/upper /memory/work
$b mount -t overlay -o lowerdir=/host,upperdir=/memory/upper,workdir=/memory/work overlay /root
$b mount --move /dev /root/dev
exec $b switch_root /root /bin/sh "$@"
