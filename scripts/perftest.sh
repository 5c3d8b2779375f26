#!/usr/bin/env bash
# Fetches the perftest that muster carries to hosts without their own: scripts/perftest.sh FOLDER
# Puts Debian 12's ib_write_bw, ib_write_lat, librdmacm and libpci into FOLDER, unchanged, under the names of base/perftest_files.h, with what
# came with them in FOLDER/packages: a line "PACKAGE VERSION SOURCE SOURCE-VERSION" each, and their licences in FOLDER/licences. Packages come
# from this machine's apt, which checks their signatures; nothing is installed. libibverbs and its providers are not taken: they have to match
# the kernel and the adapters of the host. These programs need glibc 2.34 there, libibverbs with its providers, libnl, zlib and libudev.
# A FOLDER that is there already is left as it is.
set -euo pipefail
[[ $# -eq 1 && $1 != -* ]] || { echo "usage: scripts/perftest.sh FOLDER" >&2; exit 2; }
folder=$1
[[ ! -e $folder/packages ]] || exit 0
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
chmod 755 "$work"
packages=(perftest librdmacm1 libpci3)
(cd "$work" && apt-get download -qq "${packages[@]}") >"$work/log" 2>&1 ||
  { cat "$work/log" >&2; echo "perftest.sh: apt cannot fetch ${packages[*]}: run apt-get update, or leave perftest out (release.sh --without-perftest)" >&2; exit 1; }
rm -rf "$folder"
mkdir -p "$folder/licences" "$work/root"
for package in "${packages[@]}"; do
  deb=$(echo "$work/$package"_*.deb)
  dpkg-deb -x "$deb" "$work/root"
  cp -L "$work/root/usr/share/doc/$package/copyright" "$folder/licences/$package"
  # shellcheck disable=SC2016  # dpkg's own variables
  dpkg-deb -W --showformat '${Package} ${Version} ${source:Package} ${source:Version}\n' "$deb" >>"$work/packages"
done
take() {  # take NAME PATTERN: the one file of this name in the packages
  local found
  found=$(find "$work/root" -name "$2" | head -n 1)
  [[ -n $found ]] || { echo "perftest.sh: the packages have no $2" >&2; exit 1; }
  cp -L "$found" "$folder/$1"
  chmod 755 "$folder/$1"
}
take ib_write_bw ib_write_bw
take ib_write_lat ib_write_lat
take librdmacm librdmacm.so.1
take libpci libpci.so.3
mv "$work/packages" "$folder/packages"   # last: a folder that has it is whole
