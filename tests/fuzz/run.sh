#!/usr/bin/env bash
# Feeds one parser, or each in turn, with mutations of its corpus, under the address and undefined-behaviour sanitizers:
#   tests/fuzz/run.sh [NAME|all] [SECONDS]   NAME: spec, agents, redfish, ipmi, hosts, tables (tests/fuzz/targets.h); 60 s each
# Needs clang 16 (scripts/deps.sh build clang). What it learned is kept in build-fuzz/corpus/NAME. A finding ends it (exit not 0) and lies in
# build-fuzz/finding-*: mend it, and put the input into tests/fuzz/corpus/NAME, which the unit tests read.
set -euo pipefail
cd "$(dirname "$0")/../.."
names=(spec agents redfish ipmi hosts tables)
name=${1:-all} seconds=${2:-60}
[[ $seconds =~ ^[0-9]+$ && " all ${names[*]} " == *" $name "* ]] || { echo "usage: tests/fuzz/run.sh [all|$(IFS='|'; echo "${names[*]}")] [SECONDS]" >&2; exit 2; }
[[ $name == all ]] || names=("$name")
targets=()
for name in "${names[@]}"; do targets+=("${name}_fuzz"); done
scripts/build.sh fuzz "${targets[@]}"
for name in "${names[@]}"; do
  mkdir -p "build-fuzz/corpus/$name"
  seeds=(tests/fuzz/corpus/"$name")
  [[ $name != spec ]] || seeds=(lab playbooks)
  echo "--- $name, $seconds s"
  "build-fuzz/${name}_fuzz" -max_total_time="$seconds" -timeout=10 -max_len=8192 -rss_limit_mb=4096 -print_final_stats=1 \
    -artifact_prefix="build-fuzz/finding-$name-" "build-fuzz/corpus/$name" "${seeds[@]}"
done
