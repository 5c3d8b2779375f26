#!/usr/bin/env bash
# Feeds the spec and playbook parsers with mutations of the tree's own specs and playbooks: scripts/fuzz.sh [SECONDS] (60). Needs
# clang++. What it learned is kept in build-fuzz/corpus; a finding ends it (exit not 0) and lies in build-fuzz/finding-*.
set -euo pipefail
cd "$(dirname "$0")/.."
seconds=${1:-60}
[[ $seconds =~ ^[0-9]+$ ]] || { echo "usage: scripts/fuzz.sh [SECONDS]" >&2; exit 2; }
scripts/build.sh fuzz spec_fuzz
mkdir -p build-fuzz/corpus build-fuzz/seeds
cp lab/*.yaml playbooks/*.yaml build-fuzz/seeds/
build-fuzz/spec_fuzz -max_total_time="$seconds" -timeout=10 -max_len=8192 -artifact_prefix=build-fuzz/finding- \
  build-fuzz/corpus build-fuzz/seeds
