#!/usr/bin/env bash
# What compiling costs: processor seconds (user and system, of all compilers and linkers, without compiler cache) of what quickstart.sh
# builds, and of what test.sh builds: all of preset dev and, where there is nvcc, its targets of preset gpu.
#   bench/run.sh build [--against REV] [--targets quickstart|test] [--only TARGET]
# Each tree is built in folders below $TMPDIR (/var/tmp) that are empty at first. Where both figures are wanted, the rest of dev is built in
# the quickstart's folder and its seconds are added: no file is compiled twice for it. --against: REV in a work tree of its own, in turn
# with this one; the ratios are this tree's seconds by REV's, and above its limit (0.6 quickstart, 0.75 test) the exit status is 1.
# --only TARGET: that target of preset dev and nothing else, to try this script; no limit applies. Exit 2: something did not build.
# Other work on the machine makes the seconds some percent more. Last line: JSON.
set -euo pipefail
cd "$(dirname "$0")/.."
usage="usage: bench/run.sh build [--against REV] [--targets quickstart|test] [--only TARGET]"
no() { echo "build: $*" >&2; exit 2; }
limit_quickstart=0.6 limit_test=0.75
against="" targets="quickstart test" only=""
while [[ $# -gt 0 ]]; do
  [[ $# -ge 2 ]] || no "$usage"
  case $1 in
    --against) against=$(git rev-parse --verify --quiet "$2^{commit}") || no "no such revision: $2" ;;
    --targets) [[ $2 == quickstart || $2 == test ]] || no "$usage"; targets=$2 ;;
    --only) only=$2 targets=quickstart ;;
    *) no "$usage" ;;
  esac
  shift 2
done
export PATH=$PATH:/usr/local/cuda/bin CCACHE_DISABLE=1
unset CMAKE_CXX_COMPILER_LAUNCHER CMAKE_C_COMPILER_LAUNCHER CMAKE_BUILD_PARALLEL_LEVEL
NINJA_STATUS=$(scripts/progress.sh --status)
export NINJA_STATUS

work=$(mktemp -d "${TMPDIR:-/var/tmp}/muster-bench-build.XXXXXX")
ninja=""
cleanup() {
  trap - EXIT
  trap '' INT TERM
  if [[ -n $ninja ]]; then kill "$ninja" 2>/dev/null && wait "$ninja" || true; fi   # it ends its compilers
  [[ ! -e $work/rev ]] || git worktree remove --force "$work/rev" || true
  rm -rf "$work"
  git worktree prune
}
trap cleanup EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

declare -A cpu=()   # SIDE/WHAT: hundredths of seconds; SIDE is `this` or `rev`
# Into `cs`: hundredths of seconds of all children that this shell has waited for, and theirs. A subshell would have none.
cs=0
children_cs() {
  times >"$work/times"
  cs=$(awk 'NR == 2 { gsub(/[ms]/, " "); printf "%d\n", ($1 * 60 + $2 + $3 * 60 + $4) * 100 }' "$work/times")
}
configure() {  # configure SIDE PRESET: the tree of a side is $work/this (a link) or $work/rev
  [[ ! -d $work/$1-$2 ]] || return 0
  (cd "$work/$1" && cmake --preset "$2" -B "$work/$1-$2" -D CCACHE=OFF) >"$work/log" 2>&1 || { cat "$work/log" >&2; no "cmake --preset $2"; }
  ! grep -q ccache "$work/$1-$2/build.ninja" || no "a compiler cache is in use"
}
build() {  # build SIDE WHAT PRESET TARGET...: adds to cpu[SIDE/WHAT]
  local side=$1 what=$2 preset=$3 before status=0
  shift 3
  configure "$side" "$preset"
  echo "==> $side: $what, preset $preset: ${*:-all}"
  children_cs
  before=$cs
  env --default-signal=INT ninja -C "$work/$side-$preset" "$@" > >(scripts/progress.sh) 2>&1 &
  ninja=$!
  wait "$ninja" || status=$?
  ninja=""
  [[ $status -eq 0 ]] || no "$side: $what did not build"
  children_cs
  cpu[$side/$what]=$((${cpu[$side/$what]:-0} + cs - before))
}
# Read from the scripts of the tree that is measured: another revision may build other targets.
quickstart_targets() { sed -n 's/^ *scripts\/build\.sh dev //p' "$work/$1/quickstart.sh"; }
dev_targets() { sed -n 's/^ *scripts\/build\.sh dev\( [a-z_ ]*[a-z]\)\? ||.*/\1/p' "$work/$1/test.sh"; }
gpu_targets() { sed -n 's/^ *scripts\/build\.sh gpu \([a-z_ -]*[a-z]\) .*/\1/p' "$work/$1/test.sh"; }
measure() {  # measure SIDE WHAT
  local words=()
  if [[ $2 == quickstart || -n $only ]]; then
    read -ra words <<<"${only:-$(quickstart_targets "$1")}"
    [[ ${#words[@]} -gt 0 ]] || no "$1: quickstart.sh names no targets"
    build "$1" "$2" dev "${words[@]}"
    return
  fi
  read -ra words < <(dev_targets "$1"; echo)
  build "$1" test dev "${words[@]}"
  ! command -v nvcc >/dev/null || { read -ra words < <(gpu_targets "$1" | tr '\n' ' ') && build "$1" test gpu "${words[@]}"; }
  cpu[$1/test]=$((${cpu[$1/test]} + ${cpu[$1/quickstart]:-0}))
}
slowest() {  # of the last column of .ninja_log's objects, in wall seconds, beside others
  cat "$work/$1"-*/.ninja_log | awk '$4 ~ /\.o$/ { at[$4] = $2 - $1 } END { for (o in at) printf "%7.1f s  %s\n", at[o] / 1000, o }' | sort -rn | awk 'NR <= 10'  # reads all: sort must not end by SIGPIPE
}

ln -s "$PWD" "$work/this"
sides=(this)
if [[ -n $against ]]; then
  git worktree add --quiet --detach "$work/rev" "$against"
  sides+=(rev)
fi
echo "load before: $(cut -d' ' -f1 /proc/loadavg), $(nproc) cores"
for what in $targets; do
  for side in "${sides[@]}"; do
    measure "$side" "$what"
    echo "$side: $what took $((${cpu[$side/$what]} / 100)) s of processor time"
  done
done
for side in "${sides[@]}"; do
  echo "slowest objects of $side, time on the clock:"
  slowest "$side"
done

commit=$(git rev-parse --short HEAD)
[[ -z $(git status --porcelain --untracked-files=no) ]] || commit+=-dirty
status=0
python3 - "$commit" "${against:0:8}" "$(nproc)" "$only" "$limit_quickstart" "$limit_test" \
  "${cpu[this/quickstart]:-}" "${cpu[rev/quickstart]:-}" "${cpu[this/test]:-}" "${cpu[rev/test]:-}" <<'PY' || status=$?
import json, sys
commit, against, cores, only, *rest = sys.argv[1:]
limits, cs = [float(x) for x in rest[:2]], [int(x) / 100 if x else None for x in rest[2:]]
ratios = [round(a / b, 3) if a is not None and b else None for a, b in (cs[:2], cs[2:])]
ok = bool(only) or all(ratio is None or ratio <= limit for ratio, limit in zip(ratios, limits))
out = {"bench": "build", "commit": commit, "quickstart_cpu_s": cs[0], "test_cpu_s": cs[2], "against": against or None,
       "against_quickstart_cpu_s": cs[1], "against_test_cpu_s": cs[3], "ratio_quickstart": ratios[0], "ratio_test": ratios[1],
       "cores": int(cores), "limit_quickstart": limits[0], "limit_test": limits[1], "ok": ok}
if only:
    out["only"] = only
print(json.dumps(out))
sys.exit(not ok)
PY
exit $status
