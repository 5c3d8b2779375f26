#!/usr/bin/env bash
# two machines behind IPMI BMCs (ipmi_sim): blank to accepted, a panic at first boot seen over SOL; power verbs; wrong password, another GUID and a BMC that is gone are distinguished
# stands on: cli/{power_test,power_verb}* controller/engines/local_engine* controller/executor/answers* controller/ports/power*
# stands on: controller/power/service/{consoles,power_service}* controller/power/{ipmi,logins,sol,waiter,wrap}* controller/power/describe controller/run/power_cycle*
# stands on: lab/{boot_faults,ipmi_bmc}* playbooks/base.yaml playbooks/firewall.yaml playbooks/ssh.yaml playbooks/storage-local.yaml
source "$(dirname "$0")/lib.sh"
for tool in ipmitool pgrep; do command -v "$tool" >/dev/null || die "$tool is missing: scripts/deps.sh lab"; done
# panic=0: a kernel that panicked stays as it is, and the boot fails at its deadline.
small_spec 2 's/driver: redfish/driver: ipmi, sol: true/' 's/^limits: .*/limits: { netboot: 5 min, boot: 3 min }\nvars: { kernel_options: panic=0 }/' \
  >"$work/cluster.yaml"
grep -q 'driver: ipmi' "$work/cluster.yaml" || die "the quickstart's driver was not replaced"
lab_up
check "each machine has an ipmi_sim, and no Redfish" \
  test "$($muster lab status --json | jq '[.nodes[] | select(.ipmi)] | length')" = 2
check "nothing listens for Redfish" nobody_listens https://10.20.1.11/redfish/v1

$muster lab break node02 panic-first-boot
start=$SECONDS
up_begins
hears() { test -s "$MUSTER_LAB_DIR/state/consoles/node02.log"; }
during_up "its console is listened to, before it panics" hears
sol_told() {  # captured first: a pipe that grep closes would count as a failure
  local words
  words=$($muster why node02 2>/dev/null) && [[ $words == *'its console: Kernel panic - not syncing'* ]]
}
during_up "why names the panic that was seen over SOL, long before the deadline" sol_told
up_ends 0
echo "  bring-up took $((SECONDS - start)) s"
check "both are accepted" test "$(node_state node01) $(node_state node02)" = "accepted accepted"
check "the run names it as the reason of the boot that failed" \
  test "$(journal "select count(*) from journal where action = 'node02/boot' and data like '%within%its console: Kernel panic - not syncing%'")" = 1
check "it is in the log, and in no other node's" \
  test "$(journal "select group_concat(distinct node) from event where kind = 'console' and json like '%Kernel panic%'")" = node02
check "the console is kept" grep -qa 'Kernel panic - not syncing' "$MUSTER_LAB_DIR/state/consoles/node02.log"
no_sol() { ! pgrep -f 'ipmitool.* 10[.]20[.]1[.]1[12] .*sol activate' >/dev/null; }
check "the consoles are hung up when the run is over" wait_until 30 no_sol
check "their boot device was set to the network by IPMI" \
  test "$(grep -c ' node0[12] IPMI set boot pxe ok' "$MUSTER_LAB_DIR/bmc.log")" -ge 2
check "their GUIDs are pinned" test "$(grep -c '"guid:[0-9a-f]\{32\}"' "$MUSTER_LAB_DIR/state/bmc-pins.json")" = 2
secret=$(cat "$MUSTER_LAB_DIR"/bmc-secret)
check "the BMC password is in no log" nowhere_in "${secret##*:}" "$MUSTER_LAB_DIR"/*.log "$MUSTER_LAB_DIR"/nodes/*/ipmi.log "$work/report" "$work/up.log"

echo "  power by hand"
power() { $muster lab status --json | jq -r --arg n "$1" '.nodes[] | select(.name == $n) | .power'; }
check "state" sh -c "$muster power state node01 | grep -qx 'node01: on'"
expect_exit 0 $muster power off node01 --yes
check "the machine is off" test "$(power node01)" = off
check "a test of the driver passes on it, and leaves it off" \
  sh -c "$muster power test node01 --json >'$work/test.json' && jq -e '.passed and .driver.driver == \"ipmi\" and .driver.cipher_suite == 3' '$work/test.json'"
check "the machine is off again" test "$(power node01)" = off
expect_exit 0 $muster power on node01
check "the machine is on" test "$(power node01)" = on
$muster power test node01 </dev/null >"$work/asked" 2>&1 && die "a machine that is on was switched off unasked"
check "a test does not switch a machine off unasked" test "$(power node01)" = on

echo "  a wrong password"
printf 'admin:wrong' | $muster secret set bmc
got=0; $muster power state node02 >"$work/wrong" 2>&1 || got=$?
check "it is refused (exit 4)" test "$got" = 4
check "and says so" grep -q "rejects the user and password" "$work/wrong"
got=0; $muster power state node02 >"$work/wrong2" 2>&1 || got=$?
check "the BMC is not asked again with it" grep -q "No login is tried" "$work/wrong2"
$muster secret set bmc <"$MUSTER_LAB_DIR/bmc-secret"
check "the right one, at once" sh -c "$muster power state node02 | grep -qx 'node02: on'"

echo "  another BMC at the address"
$muster lab break node02 other-guid
got=0; $muster power off node02 --yes >"$work/guid" 2>&1 || got=$?
check "it is refused (exit 4)" test "$got" = 4
check "and says what it shows and what it should" grep -q "has the GUID guid:.* has guid:" "$work/guid"
check "the machine stays on" test "$(power node02)" = on
$muster lab break node02 other-guid --heal
check "its own again" sh -c "$muster power state node02 | grep -qx 'node02: on'"

echo "  lab serve ends; its ipmi_sim do not outlive the lab"
note_used
$muster lab down
check "nothing is left" test -z "$(pgrep -f "$MUSTER_LAB_DIR/")"
