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
