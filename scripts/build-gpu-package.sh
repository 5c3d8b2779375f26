#!/usr/bin/env bash
# Makes the package muster-accept-gpu: scripts/build-gpu-package.sh [--here] [FOLDER]
# Needs no CUDA, and no GPU, on this machine: it is built in a Debian 13 of its own (non-free: nvidia-cuda-toolkit 12.4, libnccl-dev; about
# 9 GB in MUSTER_CHROOT_CACHE, else ~/.cache/muster/chroot, which is kept), as root, with packages from the host's apt mirrors. With --here:
# with this machine's own nvcc (12.4 or newer, with cublasLt.h and nccl.h), without root. FOLDER gets the .deb; default: build-packages.
# Nodes need the glibc of the Debian it was built on, or a newer one. Install the .deb where the controller runs.
set -euo pipefail
cd "$(dirname "$0")/.."
usage="usage: scripts/build-gpu-package.sh [--here] [FOLDER]"
here=0
[[ ${1:-} != --here ]] || { here=1; shift; }
[[ $# -le 1 && ${1:-} != -* ]] || { echo "$usage" >&2; exit 2; }
folder=${1:-build-packages}

if [[ $here -eq 1 ]]; then
  nvcc=$(command -v nvcc || echo /usr/local/cuda/bin/nvcc)
  release=$("$nvcc" --version 2>/dev/null | sed -n 's/.*release \([0-9.]*\).*/\1/p')
  [[ -n $release && $(printf '%s\n' 12.4 "$release" | sort -V | head -n 1) == 12.4 ]] ||
    { echo "build-gpu-package.sh: --here needs nvcc 12.4 or newer, this is ${release:-none}; without --here it is built in a Debian 13" >&2; exit 1; }
  scripts/build-gpu-deb.sh "$folder"
else
  [[ $EUID -eq 0 ]] || { echo "build-gpu-package.sh: needs root (chroot), or --here" >&2; exit 2; }
  source scripts/chroot-lib.sh
  root=${MUSTER_CHROOT_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/muster/chroot}/trixie-gpu
  chroot_make "$root" trixie main contrib non-free non-free-firmware
  chroot_copy_tree "$root"
  chroot_run "$root" <<'INSIDE'
set -euo pipefail
export HOME=/root LC_ALL=C.UTF-8 PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
cd /src
scripts/deps.sh build gpu
nvcc --version | tail -n 2
scripts/build-gpu-deb.sh build-gpu/package
INSIDE
  mkdir -p "$folder"
  cp "$root"/src/build-gpu/package/muster-accept-gpu_*.deb "$folder/"
fi
ls -l "$folder"/muster-accept-gpu_*.deb
