#!/usr/bin/env bash
# Plants single-bit flips in a matrix product and counts which check sees each: bench/run.sh sdc. FLIPS (1000), CLEAN (10000) trials.
set -euo pipefail
scripts/build.sh release muster-bench-sdc >&2
exec build-release/muster-bench-sdc "${FLIPS:-1000}" "${CLEAN:-10000}"
