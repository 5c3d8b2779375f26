#!/usr/bin/env bash
# firmware tests of 12 minutes (at a twentieth of the time) are waited for; a machine that never ends them is quarantined, the others accepted
# stands on: controller/engines/local_engine* controller/ports/{power,run_ports}* controller/power/service/power_service*
# stands on: controller/power/{bmc_json,logins,redfish,waiter,wrap}* controller/power/describe controller/{executor,run} lab/{boot_faults,fault,lab_spec,outages,rack}*
# stands on: playbooks/base.yaml playbooks/firewall.yaml playbooks/ssh.yaml playbooks/storage-local.yaml
source "$(dirname "$0")/lib.sh"
# A twentieth of real time: tests of 12 min take 36 s. A controller that gave a netboot 6 min, 18 s here, would have cut them short for ever.
small_spec 3 's/^limits: .*/limits: { netboot: 170 s, boot: 10 min }/' 's/^lab:/lab:\n  time_scale: 0.05/' >"$work/cluster.yaml"
echo '  nodes: { node02: { rails: 2, storage_nic: true, uncabled: [ rail1 ] } }' >>"$work/cluster.yaml"
lab_up
lab_node() { $muster lab status --json | jq -e --arg n "$1" "any(.nodes[]; .name == \$n and ($2))" >/dev/null; }
check "status names the time scale" sh -c "$muster lab status | grep -q '^TIME SCALE 0.05'"
check "status shows the ports, and which has no cable" \
  lab_node node02 '[.ports[] | .network + (if .cabled then "" else "!" end)] == ["storage", "rail0", "rail1!"]'

$muster lab break node01 post 12m
$muster lab break node02 post 3m
$muster lab break node03 post 68m     # 204 s here, longer than the spec's 170 s for a netboot
start=$SECONDS
up_begins
during_up "node01 is in its firmware tests, and on" lab_node node01 '.power == "on" and .firmware_tests_left_s > 0'
up_ends 3
echo "  up took $((SECONDS - start)) s"
resets() { grep " $1 " "$MUSTER_LAB_DIR/bmc.log" | grep -c "\"ResetType\":\"$2\"" || true; }
check "node01 is accepted" test "$(node_state node01)" = accepted
check "its firmware tests were not cut short: powered on once, and never again" \
  test "$(resets node01 On) $(resets node01 '[FG][a-z]*Re[A-Za-z]*') $(resets node01 'ForceOff') $(resets node01 PowerCycle)" = "1 0 0 0"
check "node02 is accepted" test "$(node_state node02)" = accepted
check "node03 is quarantined" test "$(node_state node03)" = quarantined
# The limit runs from the beginning of a try, the reason counts from its power-on: a second may lie between.
$muster why node03 >"$work/why.txt" || true
told() { grep -qE 'no agent reported from the RAM system within 2 min (49|50) s.*power is on' "$work/why.txt" || { cat "$work/why.txt" >&2; return 1; }; }
check "why says that nothing was heard of it, although it is on" told
check "it had its three tries" test "$(journal "select max(attempt) from journal where node = 'node03' and action = 'node03/netboot'")" = 3

echo "  node02's further ports, as its installed system sees them"
port_name() { node_ssh node02 "grep -il $1 /sys/class/net/*/address" | cut -d/ -f5; }
rail0=$(port_name 52:54:00:22:00:02) rail1=$(port_name 52:54:00:23:00:02)
echo "  rail0 is $rail0, rail1 is $rail1"
check "a rail has jumbo frames" test "$(node_ssh node02 cat "/sys/class/net/$rail0/mtu")" = 9000
node_ssh node02 "sudo ip link set $rail0 up; sudo ip link set $rail1 up"
carriers() { [[ $(node_ssh node02 cat "/sys/class/net/$rail0/carrier" "/sys/class/net/$rail1/carrier" | tr '\n' ' ') == "1 0 " ]]; }
check "one has a link, the one without cable has not" wait_until 10 carriers

echo "  the switch goes"
answers() { node_ssh node01 true 2>/dev/null; }
answers || die "node01 does not answer before"
$muster lab break --switch provisioning 60
check "no machine is reached" sh -c "! $muster lab ssh node01 -- true 2>/dev/null"
check "the BMCs are" $muster lab exec -- curl -skf -o /dev/null https://10.20.1.11/redfish/v1
check "it comes back by itself" wait_until 150 answers
