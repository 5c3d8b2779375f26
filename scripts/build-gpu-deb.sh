#!/usr/bin/env bash
# Builds muster-accept-gpu with the nvcc that is here and packs it alone: scripts/build-gpu-deb.sh FOLDER. For build-gpu-package.sh.
set -euo pipefail
cd "$(dirname "$0")/.."
[[ $# -eq 1 ]] || { echo "usage: scripts/build-gpu-deb.sh FOLDER" >&2; exit 2; }
scripts/build.sh gpu muster-accept-gpu
build-gpu/muster-accept-gpu --version
# Carried to hosts whose Debian, Ubuntu or EL is not this one.
glibc=$(readelf --version-info build-gpu/muster-accept-gpu | grep -o 'GLIBC_2\.[0-9]*' | sort -Vu | tail -n 1)
[[ -n $glibc && $(printf '%s\n' "$glibc" GLIBC_2.34 | sort -V | tail -n 1) == GLIBC_2.34 ]] ||
  { echo "build-gpu-deb.sh: muster-accept-gpu asks for ${glibc:-no version of glibc}; hosts have GLIBC_2.34 or newer" >&2; exit 1; }
mkdir -p "$1"
rm -f "$1"/muster-accept-gpu_*.deb
# In a folder of its own: cpack leaves what it packs beside the package.
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cpack --config build-gpu/CPackConfig.cmake -B "$work" -D CPACK_COMPONENTS_ALL=muster-accept-gpu
cp "$work"/muster-accept-gpu_*.deb "$1/"
