# shellcheck shell=bash
# Sourced by guest.sh: make_job makes what $kind says on ${dev[@]} and puts the files into it (what needs no kernel for that is made by
# made_here.py). What a rescue is given beside the disks (a header's backup, a volume group's description) goes to
# $scratch/keep/$id.*

files=/mnt/scratch/files
lvm_config='devices{scan=["/dev"] obtain_device_list_from_udev=0 use_devicesfile=0} activation{udev_sync=0 udev_rules=0}
  backup{backup=0 archive=0}'
lvm2() { local verb=$1; shift; lvm "$verb" --config "$lvm_config" "$@"; }
key() { printf 'corpus'; }

# What one job left mounted, assembled or open is no business of the next.
tidy() {
  local i
  umount -l /mnt/fs /mnt/in
  for i in 1 2; do
    zpool_away
    dmsetup remove_all --force
    mdadm --stop --scan
  done
  losetup -D
}
zpool_away() { [[ ! -S /run/zfs/zfs_socket && ! -S /var/run/zfs/zfs_socket ]] || { zpool export -a; kill "$(pgrep -x zfs-fuse)"; }; }

fill() { cp -r "$files"/. "${1:-/mnt/fs}"/ && sync; }
# TYPE DEVICE [OPTIONS]: mounts, fills, unmounts.
mounted() {
  modprobe -d /run/m "$1" 2>/dev/null
  mount -i -t "$1" -o "rw${3:+,$3}" "$2" /mnt/fs && fill && umount -i /mnt/fs
}

ext_on() { "mkfs.$2" -q -F -E nodiscard,lazy_journal_init=1 $3 "$1" && mounted ext4 "$1" noinit_itable; }
xfs_on() { mkfs.xfs -q -f -K $2 "$1" && mounted xfs "$1"; }
inner_on() { case $inner in xfs) xfs_on "$1" "-l size=64m" ;; *) ext_on "$1" ext4 "" ;; esac; }

make_job() {
  local inner=ext4 d=${dev[0]}
  [[ $options != *inner=xfs* ]] || inner=xfs
  options=${options/inner=xfs/}
  case $kind in
    btrfs) mkfs.btrfs -q -f -K $options "${dev[@]}" && btrfs device scan "${dev[@]}" >/dev/null; mounted btrfs "$d" ;;
    exfat) mkfs.exfat $options "$d" >/dev/null && modprobe -d /run/m fuse && mount.exfat-fuse "$d" /mnt/fs && fill && umount /mnt/fs ;;
    jfs) mkfs.jfs -q $options "$d" >/dev/null && mounted jfs "$d" ;;
    reiserfs) mkfs.reiserfs -q -f $options "$d" >/dev/null && mounted reiserfs "$d" ;;
    nilfs2) mkfs.nilfs2 -q -f -K $options "$d" && mounted nilfs2 "$d" ;;
    minix) mkfs.minix -3 $options "$d" >/dev/null && mounted minix "$d" ;;
    udf) mkudffs $options "$d" >/dev/null && mounted udf "$d" ;;
    hfs) hformat $options "$d" >/dev/null && mounted hfs "$d" ;;
    bfs) mkfs.bfs $options "$d" >/dev/null && make_bfs "$d" ;;
    gfs2) mkfs.gfs2 -q -K -O -p lock_nolock -j 1 $options "$d" && mounted gfs2 "$d" ;;
    ocfs2) make_ocfs2 "$d" ;;
    reiser4) mkfs.reiser4 -f -y $options "$d" >/dev/null ;;
    apfs) mkapfs $options "$d" >/dev/null ;;
    zfs) make_zfs ;;
    lvm) make_lvm ;;
    md) make_md ;;
    luks) make_luks "$d" ;;
    bcache) make_bcache "$d" ;;
    drbd) make_drbd "$d" ;;
    dmcrypt) open_plain "$d" && inner_on /dev/mapper/plain && cryptsetup close plain ;;
    *) echo "no such kind: $kind" >&2; return 1 ;;
  esac
}

open_plain() {
  modprobe -d /run/m dm-crypt
  key | cryptsetup open -q --type plain -c aes-xts-plain64 -s 256 -h sha256 "$1" plain
}
make_bfs() {  # knows no folders
  modprobe -d /run/m bfs
  mount -t bfs "$1" /mnt/fs && cp "$files"/run[0-3]/*.png /mnt/fs/ && umount /mnt/fs
}
make_ocfs2() {
  modprobe -d /run/m ocfs2
  mkfs.ocfs2 -q -F -M local $options "$1" >/dev/null < <(yes) && mounted ocfs2 "$1"
}
start_zfs() {
  modprobe -d /run/m fuse
  mkdir -p /run/zfs /run/lock/zfs
  zfs-fuse --no-kstat-mount -n >/dev/null 2>&1 &
  local i
  for i in $(seq 50); do zpool list >/dev/null 2>&1 && return 0; sleep 0.2; done
  return 1
}
make_zfs() {
  start_zfs && zpool create -f -m none "$pool" $options "${dev[@]}" && zfs set mountpoint=/mnt/in "$pool" &&
    { mountpoint -q /mnt/in || zfs mount "$pool"; } && fill /mnt/in && zpool export "$pool"
}
# Words of $options: linear | striped, hole=GIB: an unused volume of that size lies before the one with the files
make_lvm() {
  local hole=0 n=${#dev[@]} how=() word
  for word in $options; do case $word in hole=*) hole=${word#hole=} ;; striped) how=(-i "$n" -I 64k) ;; esac; done
  modprobe -d /run/m dm-mod
  lvm2 pvcreate -q -ff -y "${dev[@]}" >/dev/null && lvm2 vgcreate -q "$pool" "${dev[@]}" >/dev/null || return 1
  [[ $hole -eq 0 ]] || lvm2 lvcreate -q -y -Zn -Wn "${how[@]}" -L "${hole}g" -n unused "$pool" >/dev/null || return 1
  lvm2 lvcreate -q -y -Zn -Wn "${how[@]}" -l 100%FREE -n data "$pool" >/dev/null && inner_on "/dev/mapper/$pool-data" &&
    lvm2 vgcfgbackup -f "$scratch/keep/$id.lvm" "$pool" >/dev/null && lvm2 vgchange -an "$pool" >/dev/null
}
# $options: LEVEL METADATA [CHUNK KiB]
make_md() {
  local level metadata chunk more=()
  read -r level metadata chunk <<<"$options"
  modprobe -d /run/m -a raid0 raid1 raid10 raid456 linear
  case $level in linear | raid1) ;; *) more=(--chunk="${chunk:-512}") ;; esac
  [[ $level == raid0 || $level == linear ]] || more+=(--assume-clean --bitmap=none)
  mdadm --create /dev/md9 --run --force --level="$level" --metadata="$metadata" --raid-devices=${#dev[@]} "${more[@]}" "${dev[@]}" &&
    mdadm --examine "${dev[0]}" >"$scratch/keep/$id.md" && inner_on /dev/md9 && mdadm --stop /dev/md9
}
make_luks() {
  modprobe -d /run/m dm-crypt
  local header=() type=(--type luks2 --pbkdf pbkdf2)
  [[ $options != *luks1* ]] || type=(--type luks1)
  [[ $options != *detached* ]] || { truncate -s 16M "$scratch/keep/$id.luks"; header=(--header "$scratch/keep/$id.luks"); }
  key | cryptsetup luksFormat -q --pbkdf-force-iterations 1000 "${type[@]}" "${header[@]}" "$1" - || return 1
  if [[ $options != *detached* ]]; then cryptsetup luksHeaderBackup "$1" --header-backup-file "$scratch/keep/$id.luks" || return 1; fi
  key | cryptsetup open -d - "${header[@]}" "$1" crypt && inner_on /dev/mapper/crypt && cryptsetup close crypt
}
make_bcache() {
  make-bcache -B "$1" >/dev/null && inner_on "$(losetup -f --show -o 8192 "$1")"
}
# The file system ends before the metadata at the end of the disk.
make_drbd() {
  local blocks=$(($(blockdev --getsize64 "$1") / 4096))
  ext_on "$1" ext4 "" || return 1
  resize2fs -f "$1" $((blocks - blocks / 32768 - 64)) >/dev/null 2>&1
  drbdmeta --force 0 v08 "$1" internal create-md >/dev/null < <(yes yes)
}
