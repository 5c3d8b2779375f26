#!/usr/bin/env bash
# Makes the package muster-accept-gpu: scripts/build-gpu-package.sh [--here] [FOLDER]
# Needs no CUDA, and no GPU, on this machine: it is built in a Debian 12 of its own, with the nvidia-cuda-toolkit 12.4 of Debian 13's non-free
# (about 9 GB in MUSTER_CHROOT_CACHE, else ~/.cache/muster/chroot, which is kept), as root, with packages from the host's apt mirrors. With
# --here: with this machine's own nvcc (12.4 or newer, with cublasLt.h and nccl.h), without root. FOLDER gets the .deb and muster-gpu-VERSION-cudaN-linux-x86_64.tar.zst; default:
# build-packages. Ones that are there already (of the archive: for the same CUDA) are moved to FOLDER/older. In the FOLDER of scripts/release.sh
# the archive joins SHA256SUMS, which is signed again with MUSTER_RELEASE_KEY=FILE.
# The program needs glibc 2.34 or newer on nodes; with --here on a newer Debian than 12 it may need more, and is not packed then. Install the
# .deb where the controller runs. For `muster accept --hosts` unpack the archive beside muster, without root.
set -euo pipefail
cd "$(dirname "$0")/.."
source scripts/package-lib.sh
usage="usage: scripts/build-gpu-package.sh [--here] [FOLDER]"
here=0
[[ ${1:-} != --here ]] || { here=1; shift; }
[[ $# -le 1 && ${1:-} != -* ]] || { echo "$usage" >&2; exit 2; }
folder=${1:-build-packages}

if [[ $here -eq 1 ]]; then
  nvcc=$(command -v nvcc || echo /usr/local/cuda/bin/nvcc)
  release=$("$nvcc" --version 2>/dev/null | sed -n 's/.*release \([0-9.]*\).*/\1/p')
  [[ -n $release && $(printf '%s\n' 12.4 "$release" | sort -V | head -n 1) == 12.4 ]] ||
    { echo "build-gpu-package.sh: --here needs nvcc 12.4 or newer, this is ${release:-none}; without --here it is built in a Debian 12" >&2; exit 1; }
  built=build-gpu/package
  scripts/build-gpu-deb.sh "$built"
else
  [[ $EUID -eq 0 ]] || { echo "build-gpu-package.sh: needs root (chroot), or --here" >&2; exit 2; }
  source scripts/chroot-lib.sh
  root=${MUSTER_CHROOT_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/muster/chroot}/bookworm-gpu
  chroot_make "$root" bookworm
  chroot_offer_cuda "$root"
  chroot_copy_tree "$root"
  chroot_run "$root" <<'INSIDE'
set -euo pipefail
export HOME=/root LC_ALL=C.UTF-8 PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
cd /src
scripts/deps.sh build
/add-cuda.sh
nvcc --version | tail -n 2
scripts/build-gpu-deb.sh build-gpu/package
INSIDE
  built=$root/src/build-gpu/package
fi
mkdir -p "$folder"
set_older_aside "$folder" muster-accept-gpu
archive=$(basename "$built"/muster-gpu-*.tar.zst)
set_archives_aside "$folder" "${archive##*-cuda}"
cp "$built"/muster-accept-gpu_*.deb "$built/$archive" "$folder/"
ls -l "$folder"/muster-accept-gpu_*.deb "$folder/$archive"
version=${archive#muster-gpu-}
version=${version%-cuda*}
if [[ -f $folder/muster-$version-linux-x86_64.tar.zst ]]; then
  list_release "$folder" "$version"
elif [[ -f $folder/SHA256SUMS ]]; then
  echo "$folder/SHA256SUMS is of another version: scripts/release.sh $folder makes this one's"
fi
