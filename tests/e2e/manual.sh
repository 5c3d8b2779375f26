#!/usr/bin/env bash
# a machine that only a person can switch: asked for with a deadline, over a controller that is killed, holding up no other node; goes on when it netboots
# stands on: cli/{power_test,power_verb}* controller/boot/service/boot_service* controller/engines/local_engine* controller/ports/{power,run_ports}*
# stands on: controller/power/service/power_service* controller/power/{manual,redfish}* controller/power/describe controller/{executor,run} playbooks/base.yaml
# stands on: playbooks/firewall.yaml playbooks/ssh.yaml playbooks/storage-local.yaml
source "$(dirname "$0")/lib.sh"
small_spec 1 's/^limits:.*/limits: { netboot: 4 min, boot: 5 min }/' >"$work/one.yaml"
with_manual() {  # with_manual WITHIN: node02 stands in rack 3 and has no BMC
  awk -v within="$1" '/^storage:/ {
       print "  - name: node02\n    role: cpu\n    power: { driver: manual, address: \"rack 3, unit 12\", within: " within " }"
       print "    mac: \"52:54:00:20:00:02\"\n    address: 10.20.0.12\n    image: cpu\n    disks:"
       print "      os:   { match: { serial: \"LABOS*\",   size: 8 GiB, count: 1 }, policy: format-if-blank }"
       print "      fast: { match: { serial: \"LABFAST*\", size: 2 GiB, count: 2 }, policy: format-if-blank }" }
     { print }' "$work/one.yaml"
}
with_manual '2 h' >"$work/cluster.yaml"
lab_up
check "node02 has no BMC" test "$($muster lab status --json | jq -r '.nodes[] | select(.name == "node02") | .bmc_address')" = ""
asked() { node_is node02 '(.waiting // "") | test("by hand until .*rack 3, unit 12")'; }
switched() { journal "select count(*) from event where node = 'node02' and kind = 'power' and json like '%restarted by hand%'"; }
power() { $muster lab status --json | jq -r --arg n "$1" '.nodes[] | select(.name == $n) | .power'; }

# The other one is not held: it is looked for, installed and accepted, and the run ends.
up_begins
up_ends 3
check "node01 is accepted" test "$(node_state node01)" = accepted
check "node02 was not asked for, and it is named" grep -q 'node02 was never seen and is left out' "$work/up.log"
check "it is off" test "$(power node02)" = off

echo "  asked for, over a controller that is killed"
$muster up "$work/cluster.yaml" --limit node02 --yes --report "$work/report" >"$work/up.log" 2>&1 &
up=$!
during_up "status says what is to be done, where, and until when" asked
check "why says how it goes on" sh -c "$muster why node02 | grep -q 'muster power done node02'"
for verb in on "off --yes" "cycle --yes"; do expect_exit 2 "$muster" power $verb node02; done
check "its power is unknown" sh -c "$muster power state node02 | grep -qx 'node02: unknown'"
$muster lab restart-controller --kill
during_up "the one that came back asks, too" asked
check "no disk was touched, nothing was switched" test "$(power node02) $(switched)" = "off 0"
$muster lab power node02 netboot
went_on() { test "$(switched)" -ge 1; }
during_up "its request for the RAM system was seen" went_on
up_ends 0
cat "$work/up.log"
check "node02 is accepted" test "$(node_state node02)" = accepted
check "it needed no 'muster power done'" test "$(journal "select count(*) from event where node = 'node02' and json like '%done by hand%'")" = 0
expect_exit 4 "$muster" power "done" node02   # no request is open any more

echo "  said to be done, and not: its old system goes on reporting, and the request is repeated"
node_ssh node02 sudo touch /etc/drifted
count=$(switched)
$muster reimage node02 --through-ram --yes --report "$work/report" >"$work/up.log" 2>&1 &
up=$!
during_up "asked for" asked
check "its old system is at work meanwhile" node_ssh node02 true
expect_exit 0 "$muster" power "done" node02
not_asked() { ! asked; }
during_up "the RAM system is awaited" not_asked
during_up "asked for again" asked
$muster lab power node02 off
$muster lab power node02 netboot
up_ends 0
check "node02 is accepted" test "$(node_state node02)" = accepted
check "it is a new system" fails_on node02 "test -e /etc/drifted"
check "both times counted, and no attempt was lost" \
  test "$(($(switched) - count)) $(journal "select max(attempt) from journal where action = 'node02/netboot' and run = (select max(run) from journal)")" = "2 1"

echo "  not done by its deadline"
with_manual '5 min' >"$work/short.yaml"
$muster up "$work/short.yaml" --yes --report "$work/report" >/dev/null
node_ssh node02 cat /proc/sys/kernel/random/boot_id >"$work/boot"
start=$SECONDS
got=0
$muster reimage node02 --through-ram --yes --report "$work/report" >"$work/up.log" 2>&1 || got=$?
check "the run ends without it" test "$got" = 1 -o "$got" = 3
check "at its deadline" test $((SECONDS - start)) -ge 290
check "it is quarantined, and the reason says that it was not done" node_is node02 '.state == "quarantined" and (.reason | test("not completed within"))'
check "it is as it was: the same boot" sh -c "$muster lab ssh node02 -- cat /proc/sys/kernel/random/boot_id | diff - '$work/boot'"
check "node01 is still accepted" test "$(node_state node01)" = accepted
