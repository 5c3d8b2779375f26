#!/usr/bin/env bash
# the controller is killed with -9 in mid-imaging and in mid-playbook; the run finishes and nothing is done twice
# stands on: agent/* agent/steps/disk agent/steps/{command,step_modules,two_phase}*
# stands on: agent/storage/storage_state* agent/{boot,core,disk,facts,image,joining,link,measuring,work} controller/* controller/engines/local_engine*
# stands on: controller/options controller/ports/{run_ports,store}* controller/power/redfish* controller/rollout/service
# stands on: controller/{api,boot,bringup,current,executor,link,nodes,run,store,trust} playbooks/base.yaml playbooks/firewall.yaml playbooks/ssh.yaml
# stands on: playbooks/storage-local.yaml schema
source "$(dirname "$0")/lib.sh"
# Storage before ssh and firewall: there is playbook left after the file system was made.
small_spec 2 's/playbooks: .*/playbooks: [ base, storage-local, ssh, firewall ] }/' >"$work/cluster.yaml"
lab_up
up_begins
during_up "node01 is in the middle of imaging" node_is node01 '.phase == "image" and .fraction > 0.2'
$muster lab restart-controller --kill
echo "  controller killed and started again in mid-imaging"
# After the file system was made and before the playbook's end.
made() { [[ $(journal "select count(*) from journal where node = '$1' and event = 'step' and data like '%storage-local%file system%'") -gt 0 ]]; }
during_up "node01 has made its file system" made node01
$muster lab restart-controller --kill
echo "  controller killed and started again in mid-playbook"
uuid() { node_ssh "$1" lsblk -n -o UUID /dev/md/scratch | head -n 1; }
logs_in() { node_ssh node01 true 2>/dev/null; }   # its sshd is restarted by the very playbook
check "node01 can be logged in to" wait_until 120 logs_in
before=$(uuid node01)
boot=$(node_ssh node01 cat /proc/sys/kernel/random/boot_id)
up_ends 0
for n in node01 node02; do check "$n is accepted" test "$(node_state $n)" = accepted; done
check "the file system is the one that was made ($before)" test "$(uuid node01)" = "$before"
check "node01 was not restarted afterwards" test "$(node_ssh node01 cat /proc/sys/kernel/random/boot_id)" = "$boot"
for n in node01 node02; do
  check "$n was powered on once" test "$(grep "$n" "$MUSTER_LAB_DIR/bmc.log" | grep -c '"ResetType":"\(On\|ForceOn\|ForceRestart\)"')" = 1
  check "$n booted twice: RAM system, installed system" test "$(boots "$n")" = 2
  check "$n's actions took one attempt each" test "$(journal "select max(attempt) from journal where node = '$n'")" = 1
  check "$n: array, file system and mount were made" \
    test "$(journal "select count(distinct json_extract(data, '\$.step')) from journal where node = '$n' and event = 'step'
                     and json_extract(data, '\$.status') = 'applied' and json_extract(data, '\$.step') like 'storage-local/%'")" = 3
done
