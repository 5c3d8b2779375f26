#!/usr/bin/env bash
# Runs every unit test of build/muster_tests, in two processes at a time, each with every second one.
#   tests/units.sh    prints the end of each half and what failed, then `ran N of M`, M being those that are listed.
# Exit 0 only when both halves passed.
set -uo pipefail
cd "$(dirname "$0")/.." || exit 2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
build/muster_tests --list-test-names-only | grep . >"$work/names"
# As a file of names is read: each in quotes, what has a meaning in a pattern behind a backslash.
sed 's/[],\\"[]/\\&/g; s/.*/"&"/' "$work/names" | awk -v work="$work" '{ print >(work "/half" NR % 2) }'
halves=()
for half in 0 1; do
  build/muster_tests -f "$work/half$half" >"$work/log$half" 2>&1 &
  halves+=($!)
done
status=0 ran=0
for half in 0 1; do
  wait "${halves[$half]}" || status=1
  tail -n 20 "$work/log$half" | grep -v '^=*$'
  grep -a -B 8 -A 8 'FAILED:' "$work/log$half"   # not always among the last lines
  # "All tests passed (.. in 5 test cases)", or "test cases: 5 | 4 passed | 1 failed".
  count=$(sed -nE 's/^All tests passed \(.* in ([0-9]+) test cases?\)$/\1/p; s/^test cases: +([0-9]+) .*/\1/p' "$work/log$half" | tail -n 1)
  ran=$((ran + ${count:-0}))
done
echo "ran $ran of $(wc -l <"$work/names")"
exit "$status"
