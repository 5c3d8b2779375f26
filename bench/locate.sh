#!/usr/bin/env bash
# Finds planted faults in simulated networks: bench/run.sh locate. TRIALS (10000) per line, PLOTS (folder) for the curves as SVG.
set -euo pipefail
scripts/build.sh release muster-bench-locate >&2
exec build-release/muster-bench-locate "${TRIALS:-10000}" "${PLOTS:-}"
