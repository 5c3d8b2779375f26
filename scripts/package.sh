#!/usr/bin/env bash
# Makes the packages muster, muster-controller and muster-agent: scripts/package.sh [--of BUILD] [FOLDER]
# Installs what a build needs, builds the preset release and puts three .deb files into FOLDER (default: build-packages). With --of:
# packs the folder BUILD as it stands, installs and builds nothing. Relative folders are those of the source tree. Packages of these
# names that are there already are moved to FOLDER/older: `apt install ./muster_*.deb` must not mean two versions.
set -euo pipefail
cd "$(dirname "$0")/.."
source scripts/package-lib.sh
usage="usage: scripts/package.sh [--of BUILD] [FOLDER]"
build=
if [[ ${1:-} == --of ]]; then
  [[ $# -ge 2 ]] || { echo "$usage" >&2; exit 2; }
  build=$2
  shift 2
fi
[[ $# -le 1 && ${1:-} != -* ]] || { echo "$usage" >&2; exit 2; }
folder=${1:-build-packages}

if [[ -z $build ]]; then
  build="build-release"
  scripts/deps.sh build
  scripts/build.sh release
fi
[[ -f $build/CPackConfig.cmake ]] || { echo "package.sh: $build is no build folder: it has no CPackConfig.cmake" >&2; exit 2; }
# In a folder of its own: cpack leaves what it packs beside the packages.
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
components="muster;muster-controller;muster-agent"
cpack --config "$build/CPackConfig.cmake" -B "$work/packed" -D CPACK_COMPONENTS_ALL="$components" >"$work/log" 2>&1 ||
  { cat "$work/log" >&2; exit 1; }
mkdir -p "$folder"
set_older_aside "$folder" muster muster-controller muster-agent
mv "$work"/packed/*.deb "$folder/"
ls -l "$folder"/*.deb
