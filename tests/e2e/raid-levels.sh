#!/usr/bin/env bash
# raid5, raid6 and raid10 on one machine's drives: made, mounted, there after a restart, readable without the drives they may lose, each lost drive named
# stands on: agent/steps/disk controller/engines/local_engine* controller/plan/disk_selection* controller/power/redfish* playbooks/base.yaml
# stands on: playbooks/firewall.yaml playbooks/ssh.yaml playbooks/storage-local.yaml
source "$(dirname "$0")/lib.sh"
groups="five six ten"
declare -A level=([five]=raid5 [six]=raid6 [ten]=raid10) count=([five]=3 [six]=4 [ten]=4)
disks="" drives="" storage=""
for g in $groups; do
  disks+="      $g: { match: { serial: \"LAB${g^^}*\", size: 512 MiB, count: ${count[$g]} }, policy: format-if-blank }\\n"
  drives+="    - { name: $g, size: 512 MiB, serial_prefix: LAB${g^^}, count: ${count[$g]} }\\n"
  storage+="  $g: { engine: local, disks: $g, level: ${level[$g]}, fs: xfs, mount: /$g }\\n"
done
small_spec 1 "s#^      fast: .*#${disks%\\n}#" "s#^    - { name: fast.*#${drives%\\n}#" "s#^  scratch: .*#${storage%\\n}#" >"$work/cluster.yaml"
lab_up
up_begins && up_ends 0

on() { node_ssh node01 "$@" | tr -d '\r'; }
array() { on cat /proc/mdstat | sed -n "s/^\(md[0-9]*\) : active ${level[$1]} .*/\1/p"; }
member() { on sudo mdadm --detail "/dev/$(array "$1")" | awk '$NF ~ /^\/dev\// && /active sync/ { print $NF }' | sed -n "$2p"; }
md_tries() { local g=$1; shift; on sudo mdadm "/dev/$(array "$g")" "$@" >>"$work/mdadm.log" 2>&1; }
md() { md_tries "$@" || { cat "$work/mdadm.log" >&2; die "mdadm $*"; }; }
again() {  # the steps once more, although nothing changed
  local digest
  digest=$($muster plan --force node01 --json | tee "$work/plan.json" | jq -er .digest) || { cat "$work/plan.json" >&2; die "the plan was refused"; }
  $muster approve "$digest"
}
declare -A sum
for g in $groups; do
  check "$g is a ${level[$g]} of ${count[$g]}" test "$(on sudo mdadm --detail "/dev/$(array "$g")" | awk -F' : ' '/Raid Level|Raid Devices/ { print $2 }' | xargs)" = "${level[$g]} ${count[$g]}"
  check "and mounted from it" test "$(on findmnt -n -o SOURCE "/$g")" = "/dev/$(array "$g")"
  sum[$g]=$(on "sudo sh -c 'head -c 20000000 /dev/urandom >/$g/data && sync /$g/data && sha256sum </$g/data'")
done
$muster up "$work/cluster.yaml" --yes >"$work/again.log" || { tail -n 40 "$work/again.log"; die "the second up"; }
check "the second up says that nothing changed" grep -q "already accepted, nothing changed" "$work/again.log"

was=$(on cat /proc/sys/kernel/random/boot_id)
on sudo systemctl reboot || true
restarted() { local is; is=$(timeout 15 "$muster" lab ssh node01 -- cat /proc/sys/kernel/random/boot_id 2>/dev/null) && [[ -n $is && $is != "$was" ]]; }
wait_until 600 restarted || die "node01 does not come back"
for g in $groups; do check "after a restart $g is mounted" wait_until 180 sh -c "$muster lab ssh node01 -- findmnt -n '/$g' >/dev/null"; done

# mdadm makes the first parity by a resync: until it is through, no drive may be lost.
in_step() { [[ $(on cat "/sys/block/$(array "$1")/md/degraded" "/sys/block/$(array "$1")/md/sync_action" | xargs) == "0 idle" ]]; }
for g in $groups; do check "$g is in step" wait_until 900 in_step "$g"; done
# As many drives as each may lose; what was written is read from the others, not from memory.
declare -A lost faulty
for g in $groups; do
  gone=1
  [[ $g != six ]] || gone=2
  for ((i = 0; i < gone; i++)); do
    drive=$(member "$g" 1)
    lost[$g]+=" $(on cat "/sys/block/${drive#/dev/}/device/serial" | tr -d ' ')"
    faulty[$g]+=" $drive"
    md "$g" --fail "$drive"
  done
  on sudo sh -c "'echo 3 >/proc/sys/vm/drop_caches'"
  check "$g is whole without${lost[$g]}" test "$(on "sudo sh -c 'sha256sum </$g/data'")" = "${sum[$g]}"
done
# Its steps once more: they stop at the first array that is degraded, so each is repaired by hand after it was named.
for g in $groups; do
  got=0
  again >"$work/$g-degraded.log" 2>&1 || got=$?
  [[ $got -eq 1 ]] || tail -n 30 "$work/$g-degraded.log" >&2
  check "a degraded ${level[$g]} is not accepted (exit $got)" test "$got" = 1
  for serial in ${lost[$g]}; do
    check "$serial is named" node_is node01 ".state == \"quarantined\" and (.reason | contains(\"$serial\"))"
  done
  for drive in ${faulty[$g]}; do
    wait_until 30 md_tries "$g" --remove "$drive" || md "$g" --remove "$drive"
    md "$g" --add "$drive"
  done
  check "$g is in step again" wait_until 900 in_step "$g"
done
again || die "not accepted, with whole arrays"
check "repaired, it is accepted" test "$(node_state node01)" = accepted
for g in $groups; do check "$g has what was written" test "$(on "sudo sh -c 'sha256sum </$g/data'")" = "${sum[$g]}"; done
