# For package.sh and build-gpu-package.sh, which source it.
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
