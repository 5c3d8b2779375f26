#!/usr/bin/env bash
# Builds muster-accept-gpu with the nvcc that is here and packs it alone: scripts/build-gpu-deb.sh FOLDER. For build-gpu-package.sh.
set -euo pipefail
cd "$(dirname "$0")/.."
[[ $# -eq 1 ]] || { echo "usage: scripts/build-gpu-deb.sh FOLDER" >&2; exit 2; }
scripts/build.sh gpu muster-accept-gpu
build-gpu/muster-accept-gpu --version
mkdir -p "$1"
rm -f "$1"/muster-accept-gpu_*.deb
# In a folder of its own: cpack leaves what it packs beside the package.
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cpack --config build-gpu/CPackConfig.cmake -B "$work" -D CPACK_COMPONENTS_ALL=muster-accept-gpu
cp "$work"/muster-accept-gpu_*.deb "$1/"
