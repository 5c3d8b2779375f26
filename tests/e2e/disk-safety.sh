#!/usr/bin/env bash
# a foreign file system is refused at planning (exit 4), one that appears after approval quarantines its node (exit 3),
# two disks where one is declared are refused; the disk is byte-identical afterwards
source "$(dirname "$0")/lib.sh"
cp lab/quickstart.yaml "$work/cluster.yaml"
$muster lab up "$work/cluster.yaml"
$muster lab break node02 foreign-fs fast1
disk() { $muster lab status --json | jq -r '.nodes[] | select(.name == "node02") | .drives[] | select(.name == "fast1") | .file'; }
sum() { qemu-img convert -O raw "$(disk)" /dev/stdout 2>/dev/null | sha256sum || sha256sum <"$(disk)"; }
before=$(sum)
expect_exit 4 $muster up "$work/cluster.yaml" --yes --report "$work/report"
check "the foreign disk is byte-identical" test "$(sum)" = "$before"
check "no node was imaged" sh -c "! $muster status --json | grep -q accepted"
