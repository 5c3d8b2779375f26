#!/usr/bin/env bash
# Builds and runs the unit tests and the simulation under sanitizers: scripts/sanitize.sh [asan-ubsan|tsan]...  (default: both)
# Not part of test.sh: it builds everything twice more and runs several times slower. MUSTER_SANITIZE_SEEDS: seeds of the
# simulation (5). Ends with "N passed, N failed"; exit 0 only when none failed.
set -uo pipefail
cd "$(dirname "$0")/.." || exit 2
[[ $# -gt 0 ]] || set -- asan-ubsan tsan
seeds=${MUSTER_SANITIZE_SEEDS:-5}
# The first finding ends the program; a test that dies is a test that failed.
export ASAN_OPTIONS=detect_leaks=1:detect_stack_use_after_return=1:strict_string_checks=1
export UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1
export TSAN_OPTIONS=halt_on_error=1:second_deadlock_stack=1
passed=0
failed=0
result() {  # result NAME STATUS
  if [[ $2 -eq 0 ]]; then passed=$((passed + 1)); echo "ok    $1 (${SECONDS} s)"; else failed=$((failed + 1)); echo "FAIL  $1 (${SECONDS} s)"; fi
}
for preset in "$@"; do
  case $preset in
    asan-ubsan) folder=build-asan ;;
    tsan) folder=build-tsan ;;
    *) echo "usage: scripts/sanitize.sh [asan-ubsan|tsan]..." >&2; exit 2 ;;
  esac
  scripts/build.sh "$preset" muster_tests muster_sim
  result "$preset: build" $?
  [[ -x $folder/muster_tests && -x $folder/muster_sim ]] || continue
  "$folder/muster_tests"
  result "$preset: unit tests" $?
  "$folder/muster_sim" --fixed "$seeds"
  result "$preset: simulation, $seeds fixed seeds" $?
done
echo "$passed passed, $failed failed"
[[ $failed -eq 0 ]]
