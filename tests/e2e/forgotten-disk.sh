#!/usr/bin/env bash
# disks that look empty at their ends (zapped tables, zeroed beginnings, stripes): refused as OS and data disk (exit 4), never written
# stands on: agent/disk agent/facts/collect_facts* controller/engines/local_engine* controller/hosts/hosts_spec* controller/plan
# stands on: controller/power/redfish* controller/spec/hardware* playbooks/base.yaml playbooks/firewall.yaml playbooks/ssh.yaml
# stands on: playbooks/storage-local.yaml
source "$(dirname "$0")/lib.sh"
old='old, size: 1 GiB, serial_prefix: LABOLD, count: 12'
spec() {  # spec OS-SERIAL DATA-SERIAL
  small_spec 1 "s/fast, size: 2 GiB, serial_prefix: LABFAST, count: 2/$old/" "s/serial: \"LABOS\\*\", *size: 8 GiB, count: 1/serial: \"$1\"/" \
    "s/serial: \"LABFAST\\*\", size: 2 GiB, count: 2/serial: \"$2\"/" >"$work/cluster.yaml"
}
spec LABOS-none LABOLD-none
lab_up

# The machine is off: what an earlier owner left on its disks.
drive() { $muster lab status --json | jq -r --arg d "old$1" --arg f "$2" '.nodes[0].drives[] | select(.name == $d) | .[$f]'; }
file=() serial=()
for n in {1..12}; do file[$n]=$(drive "$n" file); serial[$n]=$(drive "$n" serial); done
mib=$((1 << 20))
put() { printf "$3" | dd of="${file[$1]}" bs=1 seek="$2" conv=notrunc status=none; }   # put DRIVE OFFSET BYTES
junk() { head -c "$3" /dev/urandom | dd of="${file[$1]}" bs=64K seek=$(($2 / 65536)) conv=notrunc status=none; }
zero() { dd if=/dev/zero of="${file[$1]}" bs=1M seek="$2" count="$3" conv=notrunc status=none; }
zapped() { sgdisk --new=1:2048:0 "${file[$1]}" >/dev/null && sgdisk --zap-all "${file[$1]}" >/dev/null; }
ext4() { mkfs.ext4 -q -F -L results "$1"; }
xfs() { mkfs.xfs -q -f -L results "$1"; }
zapped 1; put 1 $((mib + 65536 + 64)) _BHRfS_M
zapped 2; put 2 $((mib + 4096)) '\xfc\x4e\x2b\xa9'
zapped 3; put 3 $((mib + 131072)) '\x0c\xb1\xba\x00\x00\x00\x00\x00'
ext4 "${file[4]}"; zero 4 0 1
ext4 "${file[5]}"; zero 5 0 100; zero 5 924 100
xfs "${file[6]}"; zero 6 0 10
xfs "${file[7]}"; zero 7 0 200
truncate -s 1G "$work/volume"   # a stripe of two without metadata, 512 KiB each: this is the second member's beginning
ext4 "$work/volume"
dd if=/dev/urandom of="$work/volume" bs=512K seek=41 count=1 conv=notrunc status=none
for ((n = 0; n < 40; n++)); do
  dd if="$work/volume" of="${file[8]}" bs=512K skip=$((2 * n + 1)) seek=$n count=1 conv=notrunc,sparse status=none
done
junk 9 $((8 * mib)) $mib
zapped 10; put 10 $((17 * mib + 3)) 'NTFS    '
junk 11 $((1024 * mib - 16 * mib)) $((4 * mib))
names=([1]="btrfs, table zapped" [2]="md member, table zapped" [3]="ZFS, table zapped" [4]="ext4, first MiB zeroed"
  [5]="ext4, second superblocks only" [6]="XFS, first 10 MiB zeroed" [7]="XFS, second superblocks only" [8]="member of a stripe"
  [9]="data from 8 MiB" [10]="Windows data disk, table zapped" [11]="a controller's metadata")
shown=([1]=btrfs [2]=linux_raid_member [3]=zfs_member [4]=ext4 [5]=ext4 [6]=xfs [7]=xfs [8]="unknown data" [9]="unknown data"
  [10]="unknown data" [11]="unknown data")
sums() { sha256sum "${file[@]}"; }
before=$(sums)

plan_has() { jq -e "$@" "$work/plan.json" >/dev/null; }
refused() {  # refused DRIVE GROUP
  local got=0
  $muster up "$work/cluster.yaml" --yes --report "$work/report" >"$work/up.log" 2>&1 || got=$?
  [[ $got -eq 4 ]] || { cat "$work/up.log" >&2; die "${names[$1]}, group $2: exit $got instead of 4"; }
  # `up` stores no spec of which it knows that it is refused: the plan of the stored one is about an earlier disk.
  $muster plan "$work/cluster.yaml" --json >"$work/plan.json" || true
  check "${names[$1]}: refused for group $2, by name" plan_has --arg s "${serial[$1]}" --arg w "${shown[$1]}" \
    'any(.plans[].refusals[]; .rule == "disk-foreign" and (.message | contains($s) and contains($w)))'
}
for n in {1..11}; do
  spec "LABOS*" "${serial[$n]}"
  refused "$n" fast
  spec "${serial[$n]}" "${serial[12]}"
  refused "$n" os
done
check "nothing was done but to look" test "$(journal "select count(*) from journal where event = 'intent' and action not like '%/netboot' and action not like '%/inventory'")" = 0

# A blank one is not held back: it is in the plan, which is not approved.
spec "LABOS*" "${serial[12]}"
got=0
$muster up "$work/cluster.yaml" --report "$work/report" </dev/null >"$work/up.log" 2>&1 || got=$?
check "no install begins without approval (exit $got)" test "$got" = 4
$muster plan "$work/cluster.yaml" --json >"$work/plan.json"
check "a blank disk is planned for, and the blank OS disk" plan_has --arg s "${serial[12]}" \
  '.plans[-1].destroys | any(.[]; .serial == $s) and any(.[]; .serial | startswith("LABOS"))'
check "every drive is as it was, byte for byte" test "$(sums)" = "$before"
