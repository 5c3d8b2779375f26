#!/usr/bin/env bash
# a BMC that answers 503 for a while is waited for; one that never powers on is quarantined, the others accepted, exit 3
# stands on: controller/engines/local_engine* controller/ports/{power,run_ports}* controller/power/service/power_service*
# stands on: controller/power/{bmc_json,logins,redfish,waiter,wrap}* controller/{executor,run} lab/{bmc,fault,rack}* playbooks/base.yaml
# stands on: playbooks/firewall.yaml playbooks/ssh.yaml playbooks/storage-local.yaml
source "$(dirname "$0")/lib.sh"
small_spec 3 >"$work/cluster.yaml"
lab_up
# It lasts until the run has met it: `up` switches machines on at once where the image is there, and minutes later where it is built first.
$muster lab break node01 bmc-503 3600
$muster lab break node03 never-powers-on
refused() { [[ $($muster lab status --json | jq '.nodes[] | select(.name == "node01") | .bmc_requests') -ge 4 ]]; }
start=$SECONDS
up_begins
during_up "node01's BMC has answered four requests, each with 503" refused
$muster lab break node01 bmc-503 --heal
up_ends 3
echo "  up took $((SECONDS - start)) s"
check "node01 is accepted in spite of its BMC" test "$(node_state node01)" = accepted
check "node02 is accepted" test "$(node_state node02)" = accepted
check "node03 is quarantined" test "$(node_state node03)" = quarantined
check "why says that its power is off" sh -c "$muster why node03 | grep -q 'to power the machine on, but it is still off'"
check "node03 got three power-on requests, not more" \
  test "$(grep ' node03 ' "$MUSTER_LAB_DIR/bmc.log" | grep -c '"ResetType":"On"')" = 3
