#!/usr/bin/env bash
# A cluster from its spec to accepted, up to 1,000 simulated nodes, with the real planner, executor and database; then the causes of what is wrong
# among 2,000 nodes: bench/run.sh scale.
# NODES: the sizes. TMPDIR: where the databases are written.
set -euo pipefail
scripts/build.sh release muster-bench-scale >&2
read -ra sizes <<<"${NODES:-100 300 1000}"
exec build-release/muster-bench-scale "${sizes[@]}"
