#!/usr/bin/env bash
# Configures and builds a preset: scripts/build.sh [preset] [target...]
set -euo pipefail
cd "$(dirname "$0")/.."
preset=${1:-dev}
shift || true
cmake --preset "$preset" >/tmp/muster-cmake.$$ 2>&1 || { cat /tmp/muster-cmake.$$; rm -f /tmp/muster-cmake.$$; exit 1; }
rm -f /tmp/muster-cmake.$$
exec cmake --build --preset "$preset" ${@:+--target "$@"}
