#!/usr/bin/env bash
# a node loses power in the middle of imaging, and the network is cut for 60 s on another: both resume and are accepted
source "$(dirname "$0")/lib.sh"
cp lab/quickstart.yaml "$work/cluster.yaml"
$muster lab up "$work/cluster.yaml"
$muster up "$work/cluster.yaml" --yes --report "$work/report" >"$work/up.log" 2>&1 &
up=$!
imaging() { $muster status --json 2>/dev/null | jq -e --arg n "$1" '.nodes[] | select(.name == $n) | select(.phase == "image" and .percent > 5)' >/dev/null; }
check "node02 is being imaged" wait_until 240 imaging node02
$muster lab break node02 kill
$muster lab break node03 net-cut 60
wait $up || { cat "$work/up.log"; die "up failed"; }
for n in node01 node02 node03; do check "$n is accepted" test "$(node_state $n)" = accepted; done
check "the transfer was resumed, not begun again" sh -c "$muster logs node02 --json | grep -q resum"
