#!/usr/bin/env bash
# a BMC that answers 503 for a while is waited for; one that never powers on is quarantined, exit 3; a program of the site's switches a third machine
# stands on: controller/engines/local_engine* controller/ports/{power,run_ports}* controller/power/service/power_service*
# stands on: controller/power/{bmc_json,command,logins,redfish,waiter,wrap}* controller/{executor,run} lab/{bmc,fault,rack}* playbooks/base.yaml
# stands on: playbooks/firewall.yaml playbooks/ssh.yaml playbooks/storage-local.yaml
source "$(dirname "$0")/lib.sh"
# A program of the site's switches node02 (docs/drivers.md), here with `muster lab power`; its BMC is not used.
small_spec 1 | awk '
  /^storage:/ {
    for (n = 2; n <= 3; n++) {
      power = n == 2 ? "{ driver: command, program: outlet, address: 10.20.1.12 }" : "{ driver: redfish, address: 10.20.1.13, secret: bmc }"
      print "  - name: node0" n "\n    role: cpu\n    image: cpu\n    power: " power
      print "    mac: \"52:54:00:20:00:0" n "\"\n    address: 10.20.0.1" n "\n    disks:"
      print "      os:   { match: { serial: \"LABOS*\",   size: 8 GiB, count: 1 }, policy: format-if-blank }"
      print "      fast: { match: { serial: \"LABFAST*\", size: 2 GiB, count: 2 }, policy: format-if-blank }" } }
  { print }' >"$work/cluster.yaml"
mkdir -m 700 "$work/power.d"
cat >"$work/power.d/outlet" <<EOF
#!/bin/sh
read -r call
field() { printf '%s' "\$call" | jq -r ".\$1"; }
lab() { MUSTER_LAB_DIR=$MUSTER_LAB_DIR $(realpath "$muster") lab "\$@"; }
node=node0\$(field address | sed 's/.*[.]1//')
verb=\$(field verb)
echo "\$verb" >>$work/outlet.log
case \$verb in
  capabilities) echo '{"network": "once"}' ;;
  state) lab status --json | jq -c --arg n "\$node" '.nodes[] | select(.name == \$n) | {power}' ;;
  network-once) : >$work/outlet-network; echo '{}' ;;
  on) order=on
      ! rm $work/outlet-network 2>/dev/null || order=netboot
      lab power "\$node" \$order >/dev/null && echo '{}' ;;
  off) order=off
       [ "\$(field graceful)" != true ] || order=press
       lab power "\$node" \$order >/dev/null && echo '{}' ;;
esac
EOF
chmod 700 "$work/power.d/outlet"
export MUSTER_POWER_PROGRAMS=$work/power.d
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
check "its program switched it on, once" test "$(grep -cx on "$work/outlet.log")" = 1
check "node03 is quarantined" test "$(node_state node03)" = quarantined
check "why says that its power is off" sh -c "$muster why node03 | grep -q 'to power the machine on, but it is still off'"
check "node03 got three power-on requests, not more" \
  test "$(grep ' node03 ' "$MUSTER_LAB_DIR/bmc.log" | grep -c '"ResetType":"On"')" = 3
