#!/usr/bin/env bash
# Runs one benchmark: bench/run.sh NAME [ARGUMENT...]. Each is bench/NAME.sh and closes with one line of JSON.
set -euo pipefail
cd "$(dirname "$0")/.."
name=${1:-}
[[ -n $name && -f bench/$name.sh && $name != run ]] || {
  echo "usage: bench/run.sh NAME [ARGUMENT...]   ($(cd bench && ls ./*.sh | sed 's|./||; s|\.sh$||' | grep -v '^run$' | tr '\n' ' '))" >&2
  exit 2
}
shift
exec bash "bench/$name.sh" "$@"
