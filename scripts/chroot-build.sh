#!/usr/bin/env bash
# Builds muster and runs its unit tests on another Debian: scripts/chroot-build.sh debian-13|debian-12 [MUSTER_TESTS_ARGUMENT...]
# The Debian lies in a folder that is kept, so that the second time only changed files are compiled: MUSTER_CHROOT_CACHE, else
# ~/.cache/muster/chroot. Packages come from the host's own apt mirrors. Needs root. What is built is the working tree's tracked
# and new files. Nothing stays mounted: everything happens in mount and process namespaces of its own.
set -euo pipefail
cd "$(dirname "$0")/.."
case "${1:-}" in
  debian-12) suite=bookworm ;;
  debian-13) suite=trixie ;;
  *) echo "usage: scripts/chroot-build.sh debian-13|debian-12 [MUSTER_TESTS_ARGUMENT...]" >&2; exit 2 ;;
esac
shift
[[ $EUID -eq 0 ]] || { echo "chroot-build.sh: needs root (chroot)" >&2; exit 2; }
source scripts/chroot-lib.sh
root=${MUSTER_CHROOT_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/muster/chroot}/$suite
chroot_make "$root" "$suite"
chroot_copy_tree "$root"
chroot_run "$root" "$@" <<'INSIDE'
set -euo pipefail
export HOME=/root LC_ALL=C.UTF-8 PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
cd /src
scripts/deps.sh build lab test
g++ --version | head -n 1
scripts/build.sh dev
build/muster_tests "$@"
INSIDE
