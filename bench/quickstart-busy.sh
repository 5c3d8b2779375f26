#!/usr/bin/env bash
# The quickstart with every core kept busy by something else: bench/run.sh quickstart-busy [RUNS], three unless told otherwise. Each run is
# `muster lab up` and `muster up --yes` on lab/quickstart.yaml in a lab folder of its own; all three nodes must be accepted, each time.
# Needs root and a build in build/ (or $MUSTER_BUILD). One run builds the image, the others take it from the cache. Last line: JSON.
source "$(dirname "${BASH_SOURCE[0]}")/../tests/e2e/lib.sh"
runs=${1:-3}
[[ $runs =~ ^[1-9][0-9]?$ ]] || { echo "usage: bench/run.sh quickstart-busy [RUNS]" >&2; exit 2; }
spec=lab/quickstart.yaml
export MUSTER_IMAGE_CACHE=${MUSTER_IMAGE_CACHE:-$work/images}
command -v sqlite3 >/dev/null || die "apt-get install sqlite3"

# One process per core that does nothing but compute. Each ends with this script, also when that is killed; else lib.sh's clean-up ends them.
busy=()
for ((core = $(nproc); core > 0; core--)); do
  (trap - EXIT; while kill -0 $$ 2>/dev/null; do for ((i = 0; i < 200000; i++)); do :; done; done) &
  busy+=($!)
done
still_busy() { local pid; for pid in "${busy[@]}"; do kill -0 "$pid" 2>/dev/null || return 1; done; }
echo "${#busy[@]} busy processes on $(nproc) cores; images shared between the runs in $MUSTER_IMAGE_CACHE"

panics() { cat "$MUSTER_LAB_DIR"/nodes/*/console.log 2>/dev/null | grep -ac 'Kernel panic' || true; }
results=()
for ((n = 1; n <= runs; n++)); do
  export MUSTER_LAB_DIR=$work/lab$n MUSTER_SOCKET=$work/lab$n/musterd.sock
  log=$work/up$n.log
  begun=$(date +%s%N) status=0
  $muster lab up "$spec" >"$log" 2>&1 || { cat "$log" >&2; die "run $n: lab up"; }
  $muster up "$spec" --yes --report "$work/report$n" >>"$log" 2>&1 &
  wait $! || status=$?   # in the background, so that an interrupt is heeded at once
  took=$(echo "scale=1; ($(date +%s%N) - $begun) / 1000000000" | bc)
  still_busy || die "run $n: a busy process ended early, the cores were not kept busy"
  died=$(panics)
  accepted=$(jq '[.nodes[] | select(.verdict == "accepted")] | length' "$work/report$n/report.json" 2>/dev/null) || accepted=0
  [[ $status -eq 0 && ${accepted:-0} -eq 3 ]] ||
    { tail -n 30 "$log" >&2; die "run $n: up ended with $status, ${accepted:-0} of 3 accepted, $died kernel panics"; }
  image=built
  grep -q 'shared cache' "$MUSTER_LAB_DIR/musterd.log" "$log" && image="from the cache"
  attempts=$(journal "select max(attempt) from journal where event = 'intent'")   # 1: nothing had to be tried again
  echo "run $n: $took s, 3 of 3 accepted, $died kernel panics, at most $attempts attempts, image $image"
  results+=("$(jq -nc --argjson s "$took" --argjson p "$died" --argjson a "$attempts" '{s: $s, accepted: 3, panics: $p, attempts: $a}')")
  $muster lab down >/dev/null
done
printf '%s\n' "${results[@]}" | jq -sc --argjson busy "${#busy[@]}" '{bench: "quickstart-busy", busy: $busy, runs: .}'
