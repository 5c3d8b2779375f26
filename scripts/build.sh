#!/usr/bin/env bash
# Configures and builds a preset, and shows how far it is: scripts/build.sh [preset] [target...]
# Ends with cmake's exit status. `cmake --build --preset PRESET` shows every step instead.
set -euo pipefail
cd "$(dirname "$0")/.."
preset=${1:-dev}
shift || true
cmake --preset "$preset" >/tmp/muster-cmake.$$ 2>&1 || { cat /tmp/muster-cmake.$$; rm -f /tmp/muster-cmake.$$; exit 1; }
rm -f /tmp/muster-cmake.$$
NINJA_STATUS=$(scripts/progress.sh --status)
export NINJA_STATUS
cmake --build --preset "$preset" ${@:+--target "$@"} 2>&1 | scripts/progress.sh
