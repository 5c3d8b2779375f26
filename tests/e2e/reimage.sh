#!/usr/bin/env bash
# reimage puts one node back, data disks kept and the volume healed; a fourth machine is taken in, the others untouched
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
check "the drifted file is gone" sh -c "! $muster lab ssh node02 -- test -e /etc/drifted"
check "the local data is the same" sh -c "$muster lab ssh node02 -- sha256sum /scratch/blob | diff - '$work/before-scratch'"
check "the shared data is the same, read on the new node" sh -c "$muster lab ssh node02 -- sha256sum /shared/blob | diff - '$work/before'"
check "node01 was not rebooted" sh -c "$muster lab ssh node01 -- cat /proc/sys/kernel/random/boot_id | diff - '$work/boot1'"
healed() { [[ $(node_ssh node01 sudo mfsfileinfo /shared/blob | grep -c 'copy [12]') -ge 2 ]]; }
check "every chunk has two copies again" wait_until 120 healed

$muster lab add node04
sed 's/node\[01-03\]/node[01-04]/; s/"52:54:00:20:00:03" ]/"52:54:00:20:00:03", "52:54:00:20:00:04" ]/' "$work/cluster.yaml" >"$work/four.yaml"
$muster up "$work/four.yaml" --limit node04 --yes --report "$work/report-admit" | tee "$work/admit.log"
check "the plan showed what was found before anything was written" grep -q "LABOS0401" "$work/admit.log"
check "node04 is accepted" test "$(node_state node04)" = accepted
check "node01 was not rebooted" sh -c "$muster lab ssh node01 -- cat /proc/sys/kernel/random/boot_id | diff - '$work/boot1'"
check "node03 was not rebooted" sh -c "$muster lab ssh node03 -- cat /proc/sys/kernel/random/boot_id | diff - '$work/boot3'"
