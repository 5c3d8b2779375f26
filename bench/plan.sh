#!/usr/bin/env bash
# What a plan costs for clusters of several sizes, up to 1,000 nodes: bench/run.sh plan. NODES: the sizes.
set -euo pipefail
scripts/build.sh release muster-bench-plan >&2
read -ra sizes <<<"${NODES:-100 400 1000}"
exec build-release/muster-bench-plan "${sizes[@]}"
