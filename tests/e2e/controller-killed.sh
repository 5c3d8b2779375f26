#!/usr/bin/env bash
# the controller is killed with -9 in mid-imaging and in mid-playbook; the run finishes and nothing is done twice
source "$(dirname "$0")/lib.sh"
cp lab/quickstart.yaml "$work/cluster.yaml"
$muster lab up "$work/cluster.yaml"
$muster up "$work/cluster.yaml" --yes --report "$work/report" >"$work/up.log" 2>&1 &
up=$!
in_phase() { $muster status --json 2>/dev/null | jq -e --arg p "$1" '[.nodes[] | select(.phase == $p)] | length > 0' >/dev/null; }
for phase in image configure; do
  check "a node is in phase $phase" wait_until 300 in_phase $phase
  $muster lab restart-controller --kill
  echo "  controller killed and started again in phase $phase"
done
wait $up || { cat "$work/up.log"; die "up failed"; }
for n in node01 node02 node03; do check "$n is accepted" test "$(node_state $n)" = accepted; done
$muster report --format json >"$work/final.json"
check "every node was powered on once" sh -c "[ \$(grep -c 'ForceRestart\|\"On\"' '$MUSTER_LAB_DIR'/bmc.log) -le 6 ]"
