#!/usr/bin/env bash
# Makes plans for clusters of several sizes, with the playbooks that are shipped: bench/run.sh plan. NODES: the sizes.
set -euo pipefail
scripts/build.sh release muster-bench-plan >&2
read -ra sizes <<<"${NODES:-8 100 400 1000 2000}"
exec build-release/muster-bench-plan "${sizes[@]}"
