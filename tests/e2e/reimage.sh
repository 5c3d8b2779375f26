#!/usr/bin/env bash
# reimage puts one node back, data disks kept and the volume healed; a fourth machine is taken in, the others untouched
# stands on: agent/* agent/steps/disk agent/steps/system/slot* agent/steps/{command,step_modules,two_phase,wait_for}*
# stands on: agent/storage/{health,metadata,moosefs,parts,shared,storage_state}* agent/{boot,core,disk,facts,image,joining,link,measuring,work}
# stands on: base cli controller/* controller/engines/{engine,local_engine,moosefs_engine}* controller/hosts/hosts_spec*
# stands on: controller/options controller/ports/{power,run_ports,store}* controller/power/service/power_service*
# stands on: controller/power/{bmc_json,logins,redfish,waiter,wrap}* controller/power/describe controller/rollout/service
# stands on: controller/{api,boot,bringup,current,executor,image,link,nodes,plan,run,spec,store,trust} host images/debian-12.yaml lab lab/*
# stands on: playbooks/base.yaml playbooks/firewall.yaml playbooks/mpi.yaml playbooks/ssh.yaml playbooks/storage-local.yaml
# stands on: playbooks/storage-shared.yaml schema sys
source "$(dirname "$0")/lib.sh"
cp lab/quickstart.yaml "$work/cluster.yaml"
$muster lab up "$work/cluster.yaml"
$muster up "$work/cluster.yaml" --yes --report "$work/report" >/dev/null

node_ssh node01 sudo sh -c "'dd if=/dev/urandom of=/shared/blob bs=1M count=8 2>/dev/null; sync; sha256sum /shared/blob'" >"$work/before"
node_ssh node02 sudo sh -c "'dd if=/dev/urandom of=/scratch/blob bs=1M count=4 2>/dev/null; sync; sha256sum /scratch/blob'" >"$work/before-scratch"
node_ssh node02 sudo touch /etc/drifted
boots() { node_ssh "$1" cat /proc/sys/kernel/random/boot_id; }
boots node01 >"$work/boot1"
boots node03 >"$work/boot3"

$muster reimage node02 --yes --report "$work/report-reimage"
check "node02 is accepted again" test "$(node_state node02)" = accepted
check "the drifted file is gone" fails_on node02 "test -e /etc/drifted"
check "the local data is the same" sh -c "$muster lab ssh node02 -- sha256sum /scratch/blob | diff - '$work/before-scratch'"
check "the shared data is the same, read on the new node" sh -c "$muster lab ssh node02 -- sha256sum /shared/blob | diff - '$work/before'"
check "node01 was not rebooted" sh -c "$muster lab ssh node01 -- cat /proc/sys/kernel/random/boot_id | diff - '$work/boot1'"
healed() { [[ $(node_ssh node01 sudo mfsfileinfo /shared/blob | grep -c 'copy [12]') -ge 2 ]]; }
check "every chunk has two copies again" wait_until 120 healed

# A machine that is in no spec. Without discovery it is not known; with it, it shows what is in it, and nothing is written to it.
boots node02 >"$work/boot2"
expect_exit 2 $muster node admit node04 --like node03 --power-address 10.20.1.14 --yes
$muster node discover on --for '30 min'
$muster lab add node04 --on --json >"$work/added.json"
mac=$(jq -r .mac "$work/added.json") bmc=$(jq -r .bmc_address "$work/added.json")
check "its MAC is in no spec" says_without "$mac" $muster spec show
machine() { $muster node list --json | jq -e --arg m "$mac" '.unknown_machines[] | select(.mac == $m and .facts)'; }
shows_up() { machine >"$work/machine.json"; }
check "the unknown machine boots and shows its inventory" wait_until 150 shows_up
$muster node list | tee "$work/list.log"
check "the list has its drives" grep -q "unknown-$mac .*4: " "$work/list.log"
$muster node show "unknown-$mac" | tee "$work/show.log"
check "its drives are shown, blank" test "$(grep -c 'LAB.*04.*blank' "$work/show.log")" = 4
drives() { $muster lab status --json | jq -r '.nodes[] | select(.name == "node04") | .drives[].file'; }
check "nothing is written on them" sh -c "for f in $(drives | tr '\n' ' '); do [ \$(du -B1 \"\$f\" | cut -f1) -eq 0 ] || exit 1; done"

# A BMC of another machine: refused before it is touched. Then the right one.
expect_exit 2 $muster node admit node04 --like node3 --power-address "$bmc" --yes
expect_exit 2 $muster node admit node04 --like node03 --power-address 10.20.1.13 --yes
expect_exit 2 $muster node admit node04 --like node03 --yes
expect_exit 4 $muster node admit node04 --like node03 --machine "unknown-$mac" --power-address "$bmc" </dev/null
check "still nothing is written on them" sh -c "for f in $(drives | tr '\n' ' '); do [ \$(du -B1 \"\$f\" | cut -f1) -eq 0 ] || exit 1; done"
$muster node admit node04 --like node03 --machine "unknown-$mac" --power-address "$bmc" --yes --report "$work/report-admit" | tee "$work/admit.log"
check "the plan showed what was found before anything was written" grep -q "LABOS0401" "$work/admit.log"
check "node04 is accepted" test "$(node_state node04)" = accepted
check "the spec has one more entry, and is otherwise the same" \
  sh -c "$muster spec show --diff 1 | grep '^[-+]' | grep -v '^+++\|^---' | grep -vc '^+' | grep -qx 0 && $muster spec show | grep -q 'name: node04'"
check "the machine is not unknown any more" test "$($muster node list --json | jq '.unknown_machines | length')" = 0
$muster node discover off
check "the shared volume is mounted on it" sh -c "$muster lab ssh node04 -- findmnt -n -o FSTYPE /shared | grep -q fuse"
check "it reads what was written before it came" sh -c "$muster lab ssh node04 -- sha256sum /shared/blob | diff - '$work/before'"
for n in 1 2 3; do
  check "node0$n was not rebooted" sh -c "$muster lab ssh node0$n -- cat /proc/sys/kernel/random/boot_id | diff - '$work/boot$n'"
  check "node0$n is still accepted" test "$(node_state node0$n)" = accepted
done
