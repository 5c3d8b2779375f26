#!/bin/bash
# One host of bench/push.sh, process 1 of its own PID namespace, in mount, UTS and network namespaces of its own: an overlay over the
# common root, and sshd. host.sh BASE FOLDER NAME. It ends with this process.
set -euo pipefail
base=$1 folder=$2 name=$3
root=$folder/root
mkdir -p "$folder/upper" "$folder/work" "$root"
hostname "$name"
mount -t overlay overlay -o "lowerdir=$base,upperdir=$folder/upper,workdir=$folder/work" "$root"
mount -t proc proc "$root/proc"
mount -t tmpfs -o mode=755 tmpfs "$root/run"
mount -t tmpfs -o mode=755 tmpfs "$root/dev"
mkdir -p "$root/dev/shm" "$root/dev/pts" "$root/run/sshd" "$root/run/systemd/system"
for device in null zero full random urandom tty; do
  : >"$root/dev/$device"
  mount --bind "/dev/$device" "$root/dev/$device"
done
mount -t devpts -o newinstance,ptmxmode=0666 devpts "$root/dev/pts"
ln -s pts/ptmx "$root/dev/ptmx"
ln -s /proc/self/fd "$root/dev/fd"
ip link set lo up
exec chroot "$root" /usr/sbin/sshd -D -e
