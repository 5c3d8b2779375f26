#!/usr/bin/env bash
# Seconds per TB of the agent's look at disks: bench/run.sh look [AGENT]. Needs root (chroot). Last line: JSON.
# Blank sparse files of 0.5 to 7.7 TB, which are read in all places that are looked at: what the look costs the processor; how much of a
# real disk is read stands beside it, in MiB. No time is printed unless the look called them blank, and called them not blank with a
# byte at either end.
set -euo pipefail
agent=${1:-build/muster-agent}
[[ -x $agent ]] || { echo "look: no $agent; scripts/build.sh dev muster-agent" >&2; exit 2; }
[[ $EUID -eq 0 ]] || { echo "look: needs root (chroot)" >&2; exit 2; }
scratch=$(mktemp -d "${SCRATCH:-/var/tmp}/muster-look.XXXXXX")
trap 'rm -rf "$scratch"' EXIT
python3 -B bench/look.py "$agent" "$scratch"
