# Shared by the end-to-end tests: one lab per test in a folder of its own, brought down however the test ends.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

muster=build/muster
work=$(mktemp -d /var/tmp/muster-e2e.XXXXXX)
export MUSTER_LAB_DIR=$work/lab
export MUSTER_SOCKET=$MUSTER_LAB_DIR/musterd.sock

cleanup() {
  local status=$?
  trap - EXIT
  if [[ $status -ne 0 && -d $MUSTER_LAB_DIR ]]; then
    echo "--- the end of the logs (kept: $work-logs)" >&2
    mkdir -p "$work-logs"
    cp "$MUSTER_LAB_DIR"/*.log "$work-logs"/ 2>/dev/null || true
    find "$MUSTER_LAB_DIR" -name '*console*' -type f -exec cp {} "$work-logs"/ \; 2>/dev/null || true
    tail -n 25 "$work-logs"/musterd.log >&2 2>/dev/null || true
  fi
  $muster lab down >/dev/null 2>&1 || true
  rm -rf "$work"
  exit $status
}
trap cleanup EXIT
trap 'exit 130' INT TERM

die() { echo "FAILED: $*" >&2; exit 1; }
check() {  # check DESCRIPTION COMMAND...
  local what=$1
  shift
  if "$@"; then echo "  ok: $what"; else die "$what"; fi
}
# Runs a command and compares its exit status.
expect_exit() {  # expect_exit STATUS COMMAND...
  local want=$1 got=0
  shift
  "$@" || got=$?
  [[ $got -eq $want ]] || die "exit $got instead of $want: $*"
  echo "  ok: exit $want: $*"
}
node_ssh() { local n=$1; shift; $muster lab ssh "$n" -- "$@"; }
# A spec for this test: the quickstart's, edited with sed expressions.
spec_from_quickstart() { sed "$@" lab/quickstart.yaml >"$work/cluster.yaml"; }
# Polls until a command succeeds or the deadline (seconds) passes.
wait_until() {
  local deadline=$((SECONDS + $1))
  shift
  until "$@"; do [[ $SECONDS -lt $deadline ]] || return 1; sleep 1; done
}
node_state() { $muster status --json | jq -r --arg n "$1" '.nodes[] | select(.name == $n) | .state'; }
