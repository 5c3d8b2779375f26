#!/usr/bin/env bash
# Process 1 of a host that lab/hosts.sh makes, in new mount, PID, UTS and network namespaces: mounts its root and becomes its sshd.
#   hosts_init.sh NAME HOST-FOLDER BASE
set -euo pipefail
name=$1
host=$2
hostname "$name"
mount -t overlay overlay -o "lowerdir=$3,upperdir=$host/upper,workdir=$host/work" "$host/root"
cd "$host/root"
mount -t proc proc proc
# The kernel is this machine's: nothing in a host changes its settings.
mount --bind proc/sys proc/sys
mount -o remount,bind,ro proc/sys
cat /proc/sys/kernel/random/uuid >"$host/machine/boot_id"
mount --bind "$host/machine/boot_id" proc/sys/kernel/random/boot_id
mount --bind "$host/machine/loadavg" proc/loadavg
# A simulated /sys: processors and network interfaces are the real ones, firmware and drives are the host's own; no PCIe devices.
mount -t tmpfs -o mode=755 tmpfs sys
mkdir -p sys/class/{net,dmi/id,block} sys/block sys/bus/pci/devices sys/devices/virtual/net sys/devices/system/cpu "$host/sysfs"
mount -t sysfs -o ro sysfs "$host/sysfs"
for folder in class/net devices/virtual/net devices/system/cpu; do mount --bind "$host/sysfs/$folder" "sys/$folder"; done
umount "$host/sysfs"
mount --bind "$host/machine/dmi" sys/class/dmi/id
for folder in block class/block; do mount --bind "$host/machine/block" "sys/$folder"; done
mount -o remount,ro sys
mount -t tmpfs -o mode=755,size=64m tmpfs run
mount -t tmpfs -o mode=1777,size=512m tmpfs tmp
mount -t tmpfs -o mode=755 tmpfs dev
mkdir -p dev/pts run/sshd
mkdir -m 1777 dev/shm
mount -t tmpfs -o mode=1777,size=512m tmpfs dev/shm
for device in null zero full random urandom tty; do : >"dev/$device"; mount --bind "/dev/$device" "dev/$device"; done
: >dev/kmsg
mount --bind "$host/machine/kmsg" dev/kmsg
IFS=: read -r major minor <"$host/device"
mknod -m 0660 dev/nvme0n1 b "$major" "$minor"
chgrp 6 dev/nvme0n1   # disk
mount -t devpts -o newinstance,ptmxmode=0666,mode=620 devpts dev/pts
ln -s pts/ptmx dev/ptmx
ln -s /proc/self/fd dev/fd
exec chroot "$host/root" /usr/sbin/sshd -D -e
