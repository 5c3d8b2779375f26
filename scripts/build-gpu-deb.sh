#!/usr/bin/env bash
# Builds muster-accept-gpu with the nvcc that is here and packs it alone, as .deb and as archive: scripts/build-gpu-deb.sh FOLDER. For
# build-gpu-package.sh.
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

# The archive, for machines that `muster accept --hosts` starts from without a package manager: lib/muster/ beside muster's own, with a list.
package=$(basename "$1"/muster-accept-gpu_*.deb)
version=${package#muster-accept-gpu_}
version=${version%_*.deb}
cuda=$(grep -a -o '@(#)muster-accept-gpu cuda [0-9.]*' build-gpu/muster-accept-gpu | head -n 1 | grep -o '[0-9.]*$') ||
  { echo "build-gpu-deb.sh: build-gpu/muster-accept-gpu does not name its CUDA version (kernels/gpu/main.cc)" >&2; exit 1; }
name=muster-gpu-${version%.cuda*}-cuda${cuda%%.*}-linux-x86_64
mkdir -p "$work/$name/lib/muster"
install -m 0755 build-gpu/muster-accept-gpu "$work/$name/lib/muster/muster-accept-gpu"
install -m 0644 LICENSE "$work/$name/LICENSE"
commit=$(grep -o 'g[0-9a-f]\{7,\}' <<<"$version" | head -n 1 | cut -c2-) || commit=
printf '{"program": "lib/muster/muster-accept-gpu", "version": "%s", "commit": "%s", "cuda": "%s", "glibc": "%s", "sha256": "%s"}\n' \
  "$version" "$commit" "$cuda" "${glibc#GLIBC_}" "$(sha256sum build-gpu/muster-accept-gpu | cut -d' ' -f1)" >"$work/$name/muster-gpu.json"
chmod 0644 "$work/$name/muster-gpu.json"
# Of equal content equal bytes: sorted, without owners, with the commit's time.
time=$(sed -n 's/.*+\([0-9]\{4\}\)\([0-9][0-9]\)\([0-9][0-9]\)\.\([0-9][0-9]\)\([0-9][0-9]\)\([0-9][0-9]\)\..*/\1-\2-\3 \4:\5:\6 UTC/p' <<<"$version")
rm -f "$1"/muster-gpu-*.tar.zst
tar -C "$work" --sort=name --mtime="${time:-1970-01-01 UTC}" --owner=0 --group=0 --numeric-owner --mode=go-w --format=gnu -cf - "$name" |
  zstd -q -19 -T1 -o "$1/$name.tar.zst"
