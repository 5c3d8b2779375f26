#!/usr/bin/env bash
# Installs what is needed, builds, and runs what has to pass before a change goes in: format, all unit tests, the
# simulation with fixed seeds, the GPU kernels' host side where there is nvcc (else it says that this was left out),
# and of the end-to-end tests `bmc` and `short`. The others take hours: tests/e2e/run.sh NAME, or `all`.
# Exit 0 only when all of these passed, and as many unit tests ran as there are.
#   ./test.sh             all of it
#   ./test.sh --no-e2e    without the two end-to-end tests (says so, and exits 3 when all else passed)
set -uo pipefail
cd "$(dirname "$0")" || exit 2
e2e=1
case "${1:-}" in
  "") ;;
  --no-e2e) e2e=0 ;;
  *) echo "usage: ./test.sh [--no-e2e]" >&2; exit 2 ;;
esac

passed=0
failed=0
result() {  # result NAME STATUS
  if [[ $2 -eq 0 ]]; then passed=$((passed + 1)); echo "ok    $1 (${SECONDS} s)"; else failed=$((failed + 1)); echo "FAIL  $1 (${SECONDS} s)"; fi
}
finish() {
  echo "$passed passed, $failed failed"
  [[ $failed -eq 0 ]] || exit 1
  [[ $e2e -eq 1 ]] || { echo "the end-to-end run was left out: not a full pass"; exit 3; }
  exit 0
}

scripts/deps.sh build lab test || { echo "FAIL  packages could not be installed"; exit 1; }
scripts/lint.sh
result "format, spelling, shell scripts" $?
scripts/build.sh dev all muster_links || { echo "FAIL  build"; exit 1; }  # every folder links with what it declares

# The unit tests: what ran must be what is listed, and nothing may be skipped.
listed=$(build/muster_tests --list-test-names-only | grep -c .)
minimum=$(cat tests/minimum)
log=$(mktemp)
build/muster_tests >"$log" 2>&1
status=$?
tail -n 40 "$log" | grep -v '^=*$'
[[ $status -eq 0 ]] || grep -a -B 8 -A 8 'FAILED:' "$log"  # not always among the last lines
ran=$(sed -n 's/^All tests passed (.* in \([0-9]*\) test cases*)$/\1/p' "$log")
rm -f "$log"
result "unit tests" $status
[[ "${ran:-0}" -eq "$listed" && "$listed" -ge "$minimum" ]]
result "all $listed listed tests ran (ran: ${ran:-?}, at least $minimum expected)" $?

# What ran of the end-to-end tests: the ledger against git, what each test stands on, what pages say of them.
python3 tests/e2e/ledger_test.py
result "the ledger's own tests" $?
tests/e2e/ledger.py check
status=$?
if [[ $status -eq 77 ]]; then echo "left out: the ledger of end-to-end passes against git (reason above)"; else result "the ledger of end-to-end passes, and the pages" $status; fi

build/muster_sim --fixed
result "simulation, 20 fixed seeds, each twice with equal hash" $?

# The alert rules, by Prometheus' own program.
tests/alerts/run.sh
status=$?
if [[ $status -eq 77 ]]; then echo "left out: the alert rules before promtool (reason above)"; else result "every alert rule fires and stays silent as it should" $status; fi

# Third-party checkers that Debian does not have. 77: with the reason, left out.
tests/peers/phy-prism.sh --no-fetch
status=$?
if [[ $status -eq 77 ]]; then echo "left out: requests to the provider's API before Prism (reason above)"; else result "requests to the provider's API before Prism" $status; fi

# The CUDA kernels compile where there is a compiler for them. Nothing here runs on a GPU.
if PATH=$PATH:/usr/local/cuda/bin command -v nvcc >/dev/null; then
  scripts/build.sh gpu muster-accept-gpu && build-gpu/muster-accept-gpu --version >/dev/null
  result "the GPU kernels compile and link" $?
  scripts/build.sh gpu muster_gpu_tests && build-gpu/muster_gpu_tests
  result "their host side over a made-up GPU" $?
else
  echo "left out: compiling the GPU kernels, there is no nvcc"
fi

for name in bmc short; do
  [[ $e2e -eq 1 ]] || continue
  tests/e2e/run.sh $name
  result "end to end: $name" $?
done
finish
