#!/bin/bash
# Stand-in for Apptainer on Debian 12, over unshare: --version; exec [--nv] [--no-home] FOLDER COMMAND...: a folder as the root of a command
# of a user without privileges, with the devices of the node; --nv brings the driver's libraries to /.singularity.d/libs.
set -eu
[[ ${1:-} != -* || $1 == --version ]] || shift   # -s
case ${1:-} in
  --version) echo "apptainer version STANDIN_VERSION (stand-in)"; exit ;;
  exec) shift; exec unshare --user --map-current-user --keep-caps --mount -- "$BASH" "$0" inside "$@" ;;
  inside) shift ;;
  *) echo "the stand-in does not support apptainer ${1:-}" >&2; exit 1 ;;
esac
nv=""
while [[ $1 == -* ]]; do
  [[ $1 != --nv ]] || nv=yes
  shift
done
root=$(mktemp -d)
mount -t tmpfs tmpfs "$root"
cp -a "$1/." "$root" 2>/dev/null || cp -r "$1/." "$root"
mkdir -p "$root/dev" "$root/proc" "$root/.singularity.d/libs"
mount --rbind /dev "$root/dev"
mount --rbind /proc "$root/proc"
[[ -z $nv ]] || cp /usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1 /usr/lib/x86_64-linux-gnu/libcuda.so.1 "$root/.singularity.d/libs/"
cd "$root"
shift
exec chroot . "$@"
