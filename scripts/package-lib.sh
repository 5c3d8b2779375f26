# For package.sh, release.sh and build-gpu-package.sh, which source it.
# shellcheck shell=bash

# set_older_aside FOLDER PACKAGE...: moves packages of these names to FOLDER/older. `apt install ./muster_*.deb` must not mean two versions.
set_older_aside() {
  local folder=$1 package old
  shift
  for package in "$@"; do
    for old in "$folder/${package}"_*.deb; do
      [[ -f $old ]] || continue
      mkdir -p "$folder/older"
      mv "$old" "$folder/older/"
    done
  done
}

# set_archives_aside FOLDER END: moves archives of the GPU checks for this CUDA ("13-linux-x86_64.tar.zst") to FOLDER/older.
set_archives_aside() {
  local old
  for old in "$1"/muster-gpu-*-cuda"$2"; do
    [[ -f $old ]] || continue
    mkdir -p "$1/older"
    mv "$old" "$1/older/"
  done
}

# copy_pages FOLDER: README.md and all pages that it leads to, as in the source tree. Fails if a link leads out of them.
copy_pages() {
  mkdir -p "$1" && cp README.md LICENSE CHANGELOG.md CONTRIBUTING.md SECURITY.md "$1/" && cp -r docs "$1/" &&
    python3 scripts/dead_links.py "$1"
}

# is_gpu_archive FILE: whether its own list (muster-gpu.json) names the program in it, and the CUDA of its name.
is_gpu_archive() {
  local name list program
  name=$(basename "$1" .tar.zst)
  list=$(tar --zstd -xOf "$1" "$name/muster-gpu.json") || return 1
  program=$(tar --zstd -xOf "$1" "$name/lib/muster/muster-accept-gpu" | sha256sum) || return 1
  [[ $list =~ \"cuda\":\ \"([0-9]+)[.\"] && $name == *-cuda"${BASH_REMATCH[1]}"-linux-x86_64 && $list == *"\"sha256\": \"${program%% *}\""* ]]
}

# list_release FOLDER VERSION: SHA256SUMS of this version's archives in a folder, those for GPUs among them, and its signature by
# MUSTER_RELEASE_KEY. Without a key there is none.
list_release() {
  local folder=$1 name=muster-$2-linux-x86_64 archive key=${MUSTER_RELEASE_KEY:-} sums
  local files=("$name.tar.zst" "$name.spdx.json")
  rm -f "$folder"/SHA256SUMS{,.sig}
  for archive in "$folder/muster-gpu-$2-cuda"*-linux-x86_64.tar.zst; do
    [[ -f $archive ]] || continue
    is_gpu_archive "$archive" || { echo "$archive: its program is not the one that it names: scripts/build-gpu-package.sh $folder" >&2; return 1; }
    files+=("${archive##*/}")
  done
  sums=$(cd "$folder" && sha256sum "${files[@]}") || return 1
  printf '%s\n' "$sums" >"$folder/SHA256SUMS"
  if [[ -n $key ]]; then
    openssl pkeyutl -sign -rawin -inkey "$key" -in "$folder/SHA256SUMS" -out "$folder/SHA256SUMS.sig" || return 1
  else
    echo "SHA256SUMS is not signed: MUSTER_RELEASE_KEY names no key"
  fi
  [[ ${#files[@]} -gt 2 ]] || echo "SHA256SUMS has no archive for GPUs: scripts/build-gpu-package.sh $folder adds one"
}
