#!/usr/bin/env bash
# a port that counts errors while two machines are measured: degraded, the port named by its MAC, and what was counted before is no finding; a cable that goes is counted
# stands on: controller/report kernels/counters/counters* kernels/link/own_port* lab/{fault,rack_network}* playbooks/acceptance/lab-compare.yaml
source "$(dirname "$0")/lib.sh"
source tests/e2e/labs/rails.sh
lab_spec "base, ssh, firewall, networks, storage-local" 's/^lab:/lab:\n  acceptance: { compare: false }/' >"$work/cluster.yaml"
shared_lab rails

mac() { $muster lab status --json | jq -r --arg n "$1" --arg p "$2" '.nodes[] | select(.name == $n) | .ports[] | select(.network == $p) | .mac'; }  # mac NODE NETWORK
port_of() { node_ssh "$1" ip -o link | grep -i "$2" | cut -d: -f2 | tr -d ' '; }  # port_of NODE MAC
bad=$(mac node02 rail2)
port=$(port_of node02 "$bad")
check "rail 2 of node02 ($bad) is $port, an adapter that counts" sh -c "$muster lab ssh node02 -- readlink /sys/class/net/$port/device/driver | grep -q 'e1000e$'"
check "it has its address and MTU 9000" sh -c "$muster lab ssh node02 -- ip -o address show $port | grep -q 10.100.2.12 && test \$($muster lab ssh node02 -- cat /sys/class/net/$port/mtu) = 9000"
check "it carries 9000 bytes in one piece" node_ssh node01 sudo ping -q -c 3 -W 5 -M "do" -s 8972 -I 10.100.2.11 10.100.2.12

statistic() { node_ssh node02 cat "/sys/class/net/$port/statistics/$1"; }
# The driver reads the adapter's counters every two seconds only, and what the ping above left there comes late (seen: 5 after 3 frames).
settled() { before=$(statistic rx_errors); sleep 3; [[ $(statistic rx_errors) -eq $before ]]; }
wait_until 60 settled || die "rail 2 of node02 counts errors by itself"
$muster lab break node02 port-errors 3 --network rail2
counted() { [[ $(statistic rx_errors) -eq $((before + $1)) ]]; }
if ! wait_until 10 counted 3; then
  node_ssh node02 sh -c "'cd /sys/class/net/$port/statistics && grep . *'" >&2 || true
  node_ssh node02 sudo ethtool -S "$port" >&2 || true
  die "the kernel did not count 3 errors"
fi
check "the kernel counts three errors, by their length" test "$(statistic rx_length_errors)" -ge 3
check "rail 2 carries on" node_ssh node01 sudo ping -q -c 3 -W 5 -I 10.100.2.11 10.100.2.12
for wrong in "node02 port-errors --network rail0" "node01 port-errors --network rail2" "node02 port-errors" "node02 port-errors --network rail2 --heal"; do
  # shellcheck disable=SC2086
  expect_exit 2 $muster lab break $wrong
done

accept() { $muster accept --profile lab-compare --yes --report "$1"; }
verdict() { jq -r --arg n "$1" '.nodes[] | select(.name == $n) | .verdict' "$report"; }
# The checks of a node that are not as they should be.
findings() { jq -c --arg n "$1" '[.nodes[] | select(.name == $n) | .checks[] | select(.verdict == "degraded" or .verdict == "fail") | .name]' "$report"; }
names() { jq -e --arg n "$1" --arg c "$2" --arg m "$3" 'any(.nodes[] | select(.name == $n) | .checks[]; .name == $c and .verdict == "degraded" and (tostring | contains($m)))' "$report" >/dev/null; }

# Counters that are not zero are no finding.
report=$work/quiet/report.json
expect_exit 0 accept "$work/quiet"

# Does COMMAND again and again while all is measured; then the exit code is as expected.
meanwhile() {  # meanwhile EXIT REPORT-FOLDER COMMAND...
  local want=$1 folder=$2 got=0 accepting
  shift 2
  accept "$folder" >"$folder.log" 2>&1 &
  accepting=$!
  while kill -0 "$accepting" 2>/dev/null; do "$@"; sleep 1; done
  wait "$accepting" || got=$?
  [[ $got -eq $want ]] || { cat "$folder.log" >&2; die "accept ended with $got instead of $want"; }
  echo "  ok: accept ended with $want"
}
three_errors() { $muster lab break node02 port-errors 3 --network rail2 >/dev/null || echo "  (an injection failed)" >&2; }
meanwhile 5 "$work/errors" three_errors
report=$work/errors/report.json
check "node02 is degraded" test "$(verdict node02)" = degraded
check "by the errors of its port on rail 2" names node02 counters/network_errors "$bad"
echo "  node02's findings: $(findings node02)"
check "and by nothing else" test "$(findings node02)" = '["counters/network_errors"]'
check "node01 is accepted" test "$(verdict node01)" = accepted

loose=$(mac node01 rail0)
counters() { node_ssh node01 sudo /usr/lib/muster/muster-accept counters "$@"; }
counters --save /run/e2e-counters.json >/dev/null
$muster lab break node01 pull-cable --network rail0
carrier() { [[ $(node_ssh node01 cat "/sys/class/net/$(port_of node01 "$loose")/carrier" 2>/dev/null) == "$1" ]]; }
check "the machine sees the link go" wait_until 20 carrier 0
check "the other rail has its link" sh -c "test \$($muster lab ssh node01 -- cat /sys/class/net/$(port_of node01 "$(mac node01 rail1)")/carrier) = 1"
$muster lab break node01 pull-cable --network rail0 --heal
check "and come back" wait_until 20 carrier 1
counters --since /run/e2e-counters.json >"$work/cable.json"
check "a link that went down is counted once" jq -e '.metrics.link_down.value == 1' "$work/cable.json"
check "by the port's MAC" jq -e --arg m "$loose" '.detail.part | contains($m)' "$work/cable.json"

# A cable that is out stays out over a restart.
$muster lab break node01 pull-cable --network rail0
check "the fault is shown" sh -c "$muster lab status --json | jq -e '.nodes[] | select(.name == \"node01\") | .faults | has(\"pull-cable rail0\")' >/dev/null"
boot=$(node_ssh node01 cat /proc/sys/kernel/random/boot_id)
node_ssh node01 sudo systemctl reboot || true
restarted_dark() { [[ $(node_ssh node01 cat /proc/sys/kernel/random/boot_id 2>/dev/null || echo "$boot") != "$boot" ]] && carrier 0; }
check "after a restart there is no link either" wait_until 600 restarted_dark
$muster lab break node01 pull-cable --network rail0 --heal
check "healed, the link is there" wait_until 120 carrier 1
