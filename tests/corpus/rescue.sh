# shellcheck shell=bash
# Sourced by guest.sh: rescue_job tries what brings a file of $kind back from ${dev[@]}, the mildest first. The first way after which
# a planted file is there, whole, is reported. Its input: the kind and its options, as the machine's operator knows them, and $scratch/keep.

# FOLDER: is any planted file below it? Whole: by its digest.
holds() {
  find "$1" -type f -size -2M -print0 2>/dev/null | head -z -n 400 | xargs -0 -r sha256sum 2>/dev/null |
    grep -c -F -f "$scratch/sums" >/dev/null
}
# TYPE DEVICE OPTIONS: mounted so, a planted file is there.
shown() {
  modprobe -d /run/m "$1" 2>/dev/null
  local ended=1
  quick 60 mount -i -t "$1" -o "$3" "$2" /mnt/fs || return 1
  holds /mnt/fs && ended=0
  umount -i /mnt/fs || umount -l /mnt/fs
  return $ended
}
told() { echo "$1"; return 0; }
quick() { local seconds=$1; shift; timeout $((seconds * patience)) "$@" >/dev/null; }  # SECONDS COMMAND...

rescue_job() {
  mkdir -p /run/out
  rm -rf /run/out/*
  local d=${dev[0]} inner=ext4
  [[ $options != *inner=xfs* ]] || inner=xfs
  options=${options/inner=xfs/}
  case $kind in
    ext2 | ext3 | ext4) rescue_ext "$d" "$kind" ;;
    xfs) rescue_xfs "$d" ;;
    btrfs) rescue_btrfs ;;
    f2fs) shown f2fs "$d" ro && told mount || { quick 60 fsck.f2fs -a "$d"; shown f2fs "$d" ro && told fsck.f2fs; } ;;
    vfat) rescue_vfat "$d" ;;
    exfat) rescue_exfat "$d" ;;
    ntfs) rescue_ntfs "$d" ;;
    jfs) shown jfs "$d" ro && told mount || { quick 60 fsck.jfs -f -p "$d"; shown jfs "$d" ro && told fsck.jfs; } ;;
    reiserfs) shown reiserfs "$d" ro && told mount || rescue_reiserfs "$d" ;;
    minix) shown minix "$d" ro && told mount ;;
    nilfs2 | udf | hfs | bfs | ocfs2) shown "$kind" "$d" ro && told mount ;;
    gfs2) shown gfs2 "$d" ro && told mount || { quick 60 fsck.gfs2 -y "$d"; shown gfs2 "$d" ro && told fsck.gfs2; } ;;
    ufs) shown ufs "$d" ro,ufstype=44bsd && told mount || { shown ufs "$d" ro,ufstype=ufs2 && told mount; } ;;
    iso9660 | squashfs | erofs | romfs | cramfs) shown "$kind" "$d" ro && told mount ;;
    reiser4) quick 60 fsck.reiser4 --check -f -y "$d" && told "fsck.reiser4 (no file: no kernel here mounts it)" ;;
    apfs) quick 60 apfsck "$d" && told "apfsck (no file: no kernel here mounts it)" ;;
    zfs) rescue_zfs ;;
    lvm) rescue_lvm ;;
    md) rescue_md ;;
    luks) rescue_luks "$d" ;;
    bcache) rescue_inner "$(losetup -f --show -o 8192 "$d")" ;;
    drbd) rescue_ext "$d" ext4 ;;
    dmcrypt) open_plain "$d" && rescue_inner /dev/mapper/plain ;;
    *) return 1 ;;
  esac
}
rescue_inner() { case $inner in xfs) rescue_xfs "$1" ;; *) rescue_ext "$1" ext4 ;; esac; }

# Backup superblocks by size of block, with their place in KiB for mount's sb=.
rescue_ext() {
  shown "$2" "$1" ro,noload && told mount && return
  [[ $2 != ext2 ]] || { shown ext2 "$1" ro && told mount && return; }
  local block at
  for block in 4096:32768 1024:8193 2048:16384 4096:98304 1024:24577; do
    at=${block#*:} block=${block%:*}
    dumpe2fs -h -o superblock=$at -o blocksize=$block "$1" >/dev/null 2>&1 || continue
    shown ext4 "$1" ro,noload,sb=$((at * block / 1024)) && told "mount -o sb=$((at * block / 1024))" && return
    quick 240 e2fsck -f -y -b $at -B $block "$1"
    shown ext4 "$1" ro && told "e2fsck -b $at -B $block" && return
  done
  return 1
}
# xfs_repair looks for a second superblock on all of the disk; where the first allocation group ends is known here, and that one is put
# back first, which is what it would come to after hours.
rescue_xfs() {
  shown xfs "$1" ro,norecovery,nouuid && told mount && return
  python3 "$here/second_xfs.py" "$1" || return 1
  quick 240 xfs_repair -L "$1"
  shown xfs "$1" ro,nouuid && told "xfs_repair, second superblock"
}
rescue_btrfs() {
  local d=${dev[0]} i
  quick 30 btrfs device scan "${dev[@]}"
  shown btrfs "$d" ro && told mount && return
  shown btrfs "$d" ro,degraded,rescue=all && told "mount -o rescue=all" && return
  for i in 1 2; do
    quick 120 btrfs restore -i -u $i "$d" /run/out && holds /run/out && told "btrfs restore -u $i" && return
  done
  return 1
}
rescue_reiserfs() {
  quick 60 reiserfsck -q -y --fix-fixable "$1" < <(yes Yes)
  shown reiserfs "$1" ro && told reiserfsck
}
rescue_vfat() {
  shown vfat "$1" ro && told mount && return
  dd if="$1" of="$1" bs=512 skip=6 count=1 conv=notrunc status=none   # the second boot sector
  shown vfat "$1" ro && told "backup boot sector" && return
  quick 60 fsck.vfat -a -w "$1"
  shown vfat "$1" ro && told fsck.vfat
}
rescue_exfat() {
  modprobe -d /run/m fuse
  mount.exfat-fuse -o ro "$1" /mnt/fs && holds /mnt/fs && told mount && return
  umount -l /mnt/fs
  dd if="$1" of="$1" bs=512 skip=12 count=12 conv=notrunc status=none   # the second boot region
  mount.exfat-fuse -o ro "$1" /mnt/fs && holds /mnt/fs && told "backup boot region"
}
rescue_ntfs() {
  modprobe -d /run/m fuse
  ntfs-3g -o ro "$1" /mnt/fs && holds /mnt/fs && told mount && return
  umount -l /mnt/fs
  dd if="$1" of="$1" bs=512 skip=$(($(blockdev --getsz "$1") - 1)) count=1 conv=notrunc status=none   # the second boot sector
  ntfs-3g -o ro "$1" /mnt/fs && holds /mnt/fs && told "backup boot sector" && return
  umount -l /mnt/fs
  quick 60 ntfsfix "$1" && ntfs-3g -o ro "$1" /mnt/fs && holds /mnt/fs && told ntfsfix
}
rescue_zfs() {
  start_zfs || return 1
  local how
  for how in "" "-F" "-FX"; do
    quick 120 zpool import -f $how -N -d /dev "$pool" || continue
    zfs set mountpoint=/mnt/in "$pool"
    mountpoint -q /mnt/in || zfs mount "$pool"
    holds /mnt/in && told "zpool import $how" && return
  done
  return 1
}
rescue_lvm() {
  modprobe -d /run/m dm-mod
  local i uuid
  for i in "${!dev[@]}"; do
    lvm2 pvs "${dev[i]}" >/dev/null 2>&1 && continue
    uuid=$(sed -n '/pv'"$i"' {/,/}/s/.*id = "\(.*\)"/\1/p' "$scratch/keep/$id.lvm" | head -1)
    lvm2 pvcreate -q -ff -y --uuid "$uuid" --restorefile "$scratch/keep/$id.lvm" "${dev[i]}" >/dev/null || return 1
  done
  lvm2 vgcfgrestore -q -f "$scratch/keep/$id.lvm" "$pool" >/dev/null
  lvm2 vgchange -q -ay "$pool" >/dev/null || return 1
  echo "vgcfgrestore" && rescue_inner "/dev/mapper/$pool-data"
}
rescue_md() {
  local level metadata chunk more=()
  read -r level metadata chunk <<<"$options"
  modprobe -d /run/m -a raid0 raid1 raid10 raid456 linear
  mdadm --assemble --run /dev/md9 "${dev[@]}" && rescue_inner /dev/md9 && return
  mdadm --stop /dev/md9
  case $level in linear | raid1) ;; *) more=(--chunk="${chunk:-512}") ;; esac
  # As `mdadm --examine` showed it when the array was made.
  local offset
  offset=$(sed -n 's/ *Data Offset : \([0-9]*\) sectors/\1/p' "$scratch/keep/$id.md")
  [[ $metadata != 1.[12] || -z $offset ]] || more+=(--data-offset=$((offset / 2))K)
  [[ $level == raid0 || $level == linear ]] || more+=(--bitmap=none)
  mdadm --create /dev/md9 --run --force --assume-clean --level="$level" --metadata="$metadata" --raid-devices=${#dev[@]} \
    "${more[@]}" "${dev[@]}" || return 1
  echo "mdadm --create --assume-clean" && rescue_inner /dev/md9
}
rescue_luks() {
  modprobe -d /run/m dm-crypt
  if [[ $options != *detached* ]]; then
    cryptsetup isLuks "$1" || cryptsetup luksHeaderRestore -q "$1" --header-backup-file "$scratch/keep/$id.luks"
    key | cryptsetup open -d - "$1" crypt && rescue_inner /dev/mapper/crypt
  else
    key | cryptsetup open -d - --header "$scratch/keep/$id.luks" "$1" crypt && rescue_inner /dev/mapper/crypt
  fi
}
# For trying a kind: made and brought back at once.
both_job() { (make_job) >&2 && { tidy >/dev/null 2>&1; rescue_job; }; }
