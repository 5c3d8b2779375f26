#!/usr/bin/env bash
# Makes the archive that is downloaded and unpacked where running hosts are measured from: scripts/release.sh [OPTION...] [FOLDER]
# Builds the preset portable (on Debian 12, whose glibc is old enough; packages: scripts/deps.sh build archive) and puts into FOLDER (default:
# build-archive)
#     muster-VERSION-linux-x86_64.tar.zst         one folder muster-VERSION: bin/, lib/muster/, share/muster/, share/doc/muster/
#     muster-VERSION-linux-x86_64.spdx.json       what is in it, and what is linked into it (SPDX 2.3)
#     SHA256SUMS, SHA256SUMS.sig                  their digests, and those of the archives for GPUs of this version that are in FOLDER
#                                                 (scripts/build-gpu-package.sh FOLDER, before or after); the signature only with a key
# MUSTER_RELEASE_KEY=FILE: an Ed25519 key (`openssl genpkey -algorithm ED25519`) that signs the digests. Without one the list is not signed.
# --without-perftest: carries none (scripts/perftest.sh fetches it from Debian's archive).
# --check: builds HEAD twice instead, in copies in two folders, and compares what came out, byte for byte; FOLDER gets nothing.
# Fails when a program asks for a glibc newer than 2.34, or for a library that is not glibc's, or when a link of its pages leads out of it. Times in the archive are the commit's.
set -euo pipefail
cd "$(dirname "$0")/.."
source scripts/package-lib.sh
usage="usage: scripts/release.sh [--check] [--without-perftest] [FOLDER]"
check=0 perftest=1
while [[ ${1:-} == --* ]]; do
  case $1 in
    --check) check=1 ;;
    --without-perftest) perftest=0 ;;
    *) echo "$usage" >&2; exit 2 ;;
  esac
  shift
done
[[ $# -le 1 ]] || { echo "$usage" >&2; exit 2; }
folder=${1:-build-archive}
fail() { echo "release.sh: $*" >&2; exit 1; }
for tool in cmake ninja zstd python3 openssl readelf; do
  command -v $tool >/dev/null || fail "$tool is missing: scripts/deps.sh build archive"
done
key=${MUSTER_RELEASE_KEY:-}
[[ -z $key || $check -eq 1 ]] || openssl pkey -in "$key" -noout -text 2>/dev/null | grep -i '^ED25519 Private-Key' >/dev/null ||
  fail "$key is no Ed25519 key: openssl genpkey -algorithm ED25519 -out FILE"
work=$(mktemp -d "${TMPDIR:-/var/tmp}/muster-release.XXXXXX")
trap 'rm -rf "$work"' EXIT
# The commit as programs name it (cmake/version.cmake): "SECONDS HASH", with "dirty" behind it where the tree is not the commit's.
cmake -D SOURCE="$PWD" -D RECORD="$work/commit" -P cmake/version.cmake
read -r SOURCE_DATE_EPOCH commit dirty <"$work/commit" || true
[[ $SOURCE_DATE_EPOCH =~ ^[0-9]+$ ]] || fail "neither git nor cmake/commit.txt names a commit of $PWD"
# Pages and this folder go into the archive, but into no program, so they make no version dirty.
[[ ! -e .git || -z $(git -c safe.directory='*' status --porcelain -- docs README.md CHANGELOG.md CONTRIBUTING.md SECURITY.md LICENSE scripts) ]] || dirty=dirty
export SOURCE_DATE_EPOCH

if [[ $check -eq 1 ]]; then
  # Of other names and lengths, so that a path that gets into a program shows.
  for copy in "$work/a" "$work/another-folder-of-the-same-commit"; do
    mkdir "$copy"
    git -c safe.directory='*' archive "$commit" | tar -x -C "$copy"
    options=()
    [[ $perftest -eq 1 ]] || options=(--without-perftest)
    (cd "$copy" && env -u MUSTER_RELEASE_KEY scripts/release.sh "${options[@]}" out)
  done
  diff -r "$work/a/out" "$work/another-folder-of-the-same-commit/out" || fail "two builds of $commit differ"
  cat "$work/a/out/SHA256SUMS"
  echo "two builds of $commit are equal"
  exit 0
fi

build="build-portable"
scripts/build.sh portable muster_archive muster_archive_tests
$build/muster_archive_tests >"$work/log" 2>&1 || { cat "$work/log" >&2; fail "not every program is portable"; }
version=$($build/muster --version)
version=${version#muster }
name=muster-$version
root=$work/$name
cmake --install $build --component muster --prefix "$root" >"$work/log" || { cat "$work/log" >&2; exit 1; }

doc=$root/share/doc/muster
copy_pages "$doc" || fail "pages are missing, or their links lead out of the archive"
mkdir "$doc/licences"
if [[ $perftest -eq 1 ]]; then
  scripts/perftest.sh $build/perftest
  mkdir "$root/lib/muster/perftest"
  cp $build/perftest/{ib_write_bw,ib_write_lat,librdmacm,libpci} "$root/lib/muster/perftest/"
  cp $build/perftest/licences/* "$doc/licences/"
fi
sbom=$name-linux-x86_64.spdx.json
ninja -C $build -t deps >"$work/deps"
python3 scripts/release_sbom.py --build $build --deps "$work/deps" --root "$root" --version "$version" --licences "$doc/licences" >"$work/$sbom"

# What the archive promises, tried on what will be in it.
mkdir "$work/bin"
ln -s "$root/bin/muster" "$work/bin/muster"
got=0
"$work/bin/muster" node add node01 --adopt 127.0.0.1 --like node02 --json >"$work/adopt.json" || got=$?
[[ $got -eq 1 ]] && grep -q libssh "$work/adopt.json" || fail "--adopt does not say that it needs libssh: $(cat "$work/adopt.json")"
for file in lib/muster/muster-{agent,accept,accept-nvml} share/muster/playbooks/acceptance/standard.yaml share/doc/muster/{README.md,LICENSE}; do
  [[ -s $root/$file ]] || fail "$file is missing"
done
# With what is compiled behind it: a short path, of a container (/muster, /build), is a part of other texts.
here=$(sed 's/[][\.*^$+?(){}|]/\\&/g' <<<"$PWD")
compiled="build-portable|(agent|base|cli|controller|host|kernels|lab|schema|sys|tests)/[a-z]"
if grep -rlaE "$here/($compiled)" "$root" >"$work/log"; then cat "$work/log" >&2; fail "the path of this folder is in these files"; fi

archive=$name-linux-x86_64.tar.zst
tar --format=gnu --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$SOURCE_DATE_EPOCH" --mode='u+rw,go+r,go-w,a+X' \
  -C "$work" -c "$name" | zstd -q -19 --single-thread -o "$work/$archive"
mkdir -p "$folder"
cp "$work/$archive" "$work/$sbom" "$folder/"
ls -l "$folder/$archive" "$folder/$sbom"
list_release "$folder" "$version"
[[ -z ${dirty:-} ]] || echo "the tree differs from its commit: not an archive to publish"
