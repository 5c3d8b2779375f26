#!/usr/bin/env bash
# a foreign file system on a data disk, and two disks where one is declared, are refused at planning (exit 4); byte-identical afterwards
source "$(dirname "$0")/lib.sh"
cp lab/quickstart.yaml "$work/cluster.yaml"
$muster lab up "$work/cluster.yaml"
$muster lab break node02 foreign-fs fast1
disk() { $muster lab status --json | jq -r '.nodes[] | select(.name == "node02") | .drives[] | select(.name == "fast1") | .file'; }
sum() { sha256sum <"$(disk)"; }   # the lab's drives are raw files
before=$(sum)
expect_exit 4 $muster up "$work/cluster.yaml" --yes --report "$work/report"
check "the foreign disk is byte-identical" test "$(sum)" = "$before"
imaged() { $muster status --json | jq '[.nodes[] | select(.state == "accepted" or .state == "installing")] | length'; }
check "no node was imaged" test "$(imaged)" = 0
sed 's/serial: "LABFAST\*", size: 2 GiB, count: 2/serial: "LABFAST*", size: 2 GiB, count: 1/' "$work/cluster.yaml" >"$work/one.yaml"
expect_exit 4 $muster up "$work/one.yaml" --yes --report "$work/report" 2>"$work/refused"
check "the refusal names the disk group" grep -qi "fast" "$work/refused"
check "no node was imaged" test "$(imaged)" = 0
check "the foreign disk is byte-identical" test "$(sum)" = "$before"
