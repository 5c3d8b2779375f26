#!/usr/bin/env bash
# a node that reboots, is cut off or lost its power is waited for and powered on by `up`, never re-imaged unasked
# stands on: agent/core/agent* controller/engines/local_engine* controller/hosts/hosts_spec* controller/ports/{power,run_ports}*
# stands on: controller/power/service/power_service* controller/power/{redfish,waiter}* controller/rollout/service controller/spec/hardware*
# stands on: controller/{bringup,current,executor,link,nodes,plan,run} playbooks/base.yaml playbooks/firewall.yaml playbooks/ssh.yaml
# stands on: playbooks/storage-local.yaml
source "$(dirname "$0")/lib.sh"
source tests/e2e/labs/small.sh
small_spec 2 >"$work/cluster.yaml"
shared_lab small
installs() { journal "select count(*) from plan where kind = 'install' or kind = 'reimage'"; }
installs_before=$(installs)   # more than one where the bring-up had to plan again
slot() { node_ssh node02 findmnt -n -o SOURCE /; }
boot() { node_ssh node02 cat /proc/sys/kernel/random/boot_id; }
resets() { grep 'node02' "$MUSTER_LAB_DIR/bmc.log" | grep -c "\"ResetType\":\"$1\"" || true; }
answers() { node_ssh node02 true 2>/dev/null; }
silent() { node_is node02 '.state == "accepted" and .silent_since > 0'; }
node_ssh node02 "echo mine | sudo tee /etc/mine >/dev/null"
slot_before=$(slot) boot_before=$(boot) on=$(resets On) off=$(resets 'Force[A-Za-z]*')
kept() {   # kept DESCRIPTION
  check "$1: same system, same slot" test "$(node_ssh node02 cat /etc/mine) $(slot)" = "mine $slot_before"
  check "$1: accepted" test "$(node_state node02)" = accepted
  check "$1: its power was not cut" test "$(resets 'Force[A-Za-z]*')" = "$off"
}

echo "  a reboot, and up in the middle of it"
node_ssh node02 "sudo systemctl reboot" || true
down() { ! answers; }
check "it goes down" wait_until 60 down
expect_exit 0 $muster up "$work/cluster.yaml" --yes --report "$work/report-1"
check "it is back" wait_until 240 answers
boot_now=$(boot)
check "it was a boot" test "$boot_now" != "$boot_before"
kept "rebooted"
check "rebooted: it was not powered on" test "$(resets On)" = "$on"

echo "  cut off from the network"
boot_before=$(boot)
$muster lab break node02 net-cut 150
check "status shows an accepted node as silent" wait_until 120 silent
$muster plan --json >"$work/plan.json"
check "the plan names it, and only waits" sh -c "jq -e '.kind == \"wake\" and .nodes == [\"node02\"] and [.plan.actions[].kind] == [\"wake\"]' '$work/plan.json' >/dev/null"
expect_exit 0 $muster up "$work/cluster.yaml" --yes --report "$work/report-2"
check "it was not restarted" test "$(boot)" = "$boot_before"
kept "cut off"
check "cut off: it was not powered on" test "$(resets On)" = "$on"

echo "  a power cut"
$muster lab break node02 kill
check "status shows it" wait_until 150 silent
expect_exit 0 $muster up "$work/cluster.yaml" --yes --report "$work/report-3"
check "it is back" wait_until 60 answers
check "it was powered on once" test "$(resets On)" = $((on + 1))
kept "power cut"
check "the bring-up's plan is in the journal" test "$installs_before" -ge 1
check "no plan of these installed or wrote anything" test "$(installs)" = "$installs_before"
