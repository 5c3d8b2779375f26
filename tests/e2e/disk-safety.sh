#!/usr/bin/env bash
# foreign file system on a data disk, two disks where one is declared: refused (exit 4); appearing after approval: exit 3; never written
# stands on: agent/disk agent/facts/collect_facts* agent/image/image_job* agent/steps/disk controller/engines/local_engine*
# stands on: controller/hosts/hosts_spec* controller/ports/run_ports* controller/power/redfish* controller/spec/hardware*
# stands on: controller/{executor,plan,run} playbooks/base.yaml playbooks/firewall.yaml playbooks/ssh.yaml playbooks/storage-local.yaml
source "$(dirname "$0")/lib.sh"
small_spec 3 >"$work/cluster.yaml"
lab_up
$muster lab break node03 foreign-fs fast1
disk() { $muster lab status --json | jq -r --arg n "$1" '.nodes[] | select(.name == $n) | .drives[] | select(.name == "fast1") | .file'; }
sum() { sha256sum <"$(disk "$1")"; }   # the lab's drives are raw files
before=$(sum node03)
expect_exit 4 $muster up "$work/cluster.yaml" --yes --report "$work/report"
check "the foreign disk is byte-identical" test "$(sum node03)" = "$before"
imaged() { $muster status --json | jq '[.nodes[] | select(.state == "accepted" or .state == "installing")] | length'; }
check "no node was imaged" test "$(imaged)" = 0
sed 's/serial: "LABFAST\*", size: 2 GiB, count: 2/serial: "LABFAST*", size: 2 GiB, count: 1/' "$work/cluster.yaml" >"$work/one.yaml"
expect_exit 4 $muster up "$work/one.yaml" --yes --report "$work/report" 2>"$work/refused"
check "the refusal names the disk group" grep -qi "fast" "$work/refused"
check "no node was imaged" test "$(imaged)" = 0

# Without node03 there is nothing to refuse. Then an operator writes to a disk of node02 between approval and configuration.
small_spec 2 >"$work/two.yaml"
up_begins "$work/two.yaml"
during_up "node02 is being imaged" node_is node02 '.phase == "image"'
mkfs.xfs -q -f -L foreign "$(disk node02)"
late=$(sum node02)
up_ends 3
check "node01 is accepted" test "$(node_state node01)" = accepted
check "node02 is quarantined" test "$(node_state node02)" = quarantined
check "why says what happened" sh -c "$muster why node02 | grep -q 'its content changed since the plan was approved'"
check "the disk that changed is byte-identical" test "$(sum node02)" = "$late"
check "the disk that was refused still is" test "$(sum node03)" = "$before"
