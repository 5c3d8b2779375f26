#!/usr/bin/env bash
# error counters that are not zero when acceptance begins accuse nobody; one that moves meanwhile names its PCIe port
source "$(dirname "$0")/lib.sh"
small_spec 1 's/^limits: .*/&\nacceptance: { profile: lab }/' >"$work/cluster.yaml"
lab_up
up_begins
up_ends 0
counted() { node_ssh node01 'cat /sys/bus/pci/devices/*/aer_dev_correctable 2>/dev/null' | awk '/TOTAL_ERR_COR/ { sum += $2 } END { print sum + 0 }'; }
[[ $(counted) == 0 ]] || die "errors are counted before"
for n in 1 2 3; do
  $muster lab break node01 pcie-error fast1
  one_more() { [[ $(counted) -ge $n ]]; }
  check "the kernel counts corrected error $n" wait_until 20 one_more
done
expect_exit 0 $muster accept --report "$work/report"
check "what was counted before acceptance is no finding" test "$(node_state node01)" = accepted
check "the counters were looked at" sh -c "jq -e 'any(.nodes[].checks[]; .name | endswith(\"pcie_corrected\"))' '$work/report/report.json' >/dev/null"

echo "  and one that moves while it is measured"
$muster accept --report "$work/report2" >"$work/accept.log" 2>&1 &
up=$!
measuring() { node_is node01 '.phase == "accept"'; }
during_up "node01 is measured" measuring
while kill -0 "$up" 2>/dev/null; do $muster lab break node01 pcie-error fast1 >/dev/null 2>&1 || true; sleep 1; done
got=0
wait "$up" || got=$?
check "degraded (exit $got)" test "$got" = 5
check "the port is named" sh -c "jq -e 'any(.nodes[].checks[]; (.name | endswith(\"pcie_corrected\")) and .verdict == \"degraded\")' '$work/report2/report.json' >/dev/null"
