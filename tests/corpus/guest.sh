#!/bin/bash
# Process 1 of the guest (guest.py): carries out the jobs in the scratch folder one after the other and switches off.
# A job's functions end with status 0 or not; the last line on standard output is the result ("ok ..." or "no ...").
export PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/run LC_ALL=C DM_DISABLE_UDEV=1 MDADM_NO_UDEV=1 LVM_SYSTEM_DIR=/run/lvm
here=$(dirname "$0")
mount -t proc proc /proc
mount -t sysfs sys /sys
mountpoint -q /dev || mount -t devtmpfs dev /dev
for folder in /run /tmp /mnt; do mount -t tmpfs tmpfs $folder; done
mkdir -p /mnt/fs /mnt/in /mnt/scratch /run/lock /run/lvm /run/m/lib
[[ -d /etc/zfs ]] && mount -t tmpfs tmpfs /etc/zfs
scratch=$(sed -n 's/.*scratch=\([^ ]*\).*/\1/p' /proc/cmdline)
mount -t hostfs none /mnt/scratch -o "$scratch"
patience=$(sed -n 's/.*patience=\([0-9]*\).*/\1/p' /proc/cmdline)
scratch=/mnt/scratch

# The modules are the guest kernel's own.
ln -s /usr/lib/uml/modules /run/m/lib/modules
printf '#!/bin/sh\nexec /sbin/modprobe -d /run/m "$@"\n' >/run/modprobe
chmod 755 /run/modprobe
echo /run/modprobe >/proc/sys/kernel/modprobe
# A discard of terabytes is cut into requests of 32 KiB here.
for queue in /sys/block/ubd*/queue; do echo 0 >"$queue/discard_max_bytes"; done 2>/dev/null

modprobe -d /run/m -a loop dm-mod

source "$here/make.sh"
source "$here/rescue.sh"
for job in "$scratch"/jobs/???; do
  (
    # shellcheck source=/dev/null
    source "$job"
    read -ra dev <<<"$devices"
    pool=p${id%%-*}  # of a volume group or ZFS pool: several jobs' disks are there at once
    echo "== $id $verb $kind $options"
    set -o pipefail
    if said=$("${verb}_job" 2>"$scratch/jobs/errors"); then word=ok; else word=no; fi
    tail -n 12 "$scratch/jobs/errors"
    echo "$word $(tail -n 1 <<<"$said")" | tee "$job.new"
    mv "$job.new" "$job.result"
  ) </dev/null >>"$scratch/guest.jobs.log" 2>&1
  tidy >/dev/null 2>&1
done
sync
exec python3 -c 'import ctypes; ctypes.CDLL(None).reboot(0x4321fedc)'
