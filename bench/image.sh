#!/usr/bin/env bash
# An image written into a slot, against the slowest of link (loopback), disk and decompression: bench/run.sh image. FOLDER: on the disk
# that is measured (default /var/tmp). What is written are this machine's own libraries, 768 MiB of them. Last line: JSON.
set -euo pipefail
scripts/build.sh dev muster-bench-image >&2   # the work is zstd's, OpenSSL's and the kernel's
work=$(mktemp -d "${FOLDER:-/var/tmp}/muster-bench-image.XXXXXX")
trap 'rm -rf "$work"' EXIT
find /usr/lib /usr/bin -type f -size -64M -print0 | sort -z | xargs -0 cat 2>/dev/null | head -c 768M >"$work/raw" || true
[[ $(stat -c %s "$work/raw") -gt 300000000 ]] || { echo "/usr is too small to measure with" >&2; exit 1; }
build/muster-bench-image "$work/raw" "$work"
