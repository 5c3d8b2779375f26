#!/usr/bin/env bash
# a BMC that answers 503 for a while is waited for; one that never powers on is quarantined, the others accepted, exit 3
source "$(dirname "$0")/lib.sh"
cp lab/quickstart.yaml "$work/cluster.yaml"
$muster lab up "$work/cluster.yaml"
$muster lab break node01 bmc-503 20
$muster lab break node03 never-powers-on
expect_exit 3 $muster up "$work/cluster.yaml" --yes --report "$work/report"
check "node01 is accepted in spite of its BMC" test "$(node_state node01)" = accepted
check "node02 is accepted" test "$(node_state node02)" = accepted
check "node03 is quarantined" test "$(node_state node03)" = quarantined
check "why says what was awaited" sh -c "$muster why node03 | grep -qi power"
