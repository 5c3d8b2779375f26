#!/bin/bash
# Stand-in for enroot-mount: `enroot-mount [--root FOLDER] FILE|-...` mounts the lines of an fstab below a folder: bind mounts and tmpfs;
# x-create=dir|file|auto makes the target, nofail leaves out what is not there.
set -eu -o pipefail
root=""
[[ $1 != --root ]] || { root=$2; shift 2; }
cat "$@" | while read -r from to kind options _; do
  [[ -n $from && $from != \#* ]] || continue
  to=$root$to
  if [[ $kind == tmpfs ]]; then mkdir -p "$to"; mount -t tmpfs tmpfs "$to"; continue; fi
  if [[ ! -e $from ]]; then
    [[ ,$options, != *,nofail,* ]] || continue
    echo "enroot-mount: failed to mount: $from: No such file or directory" >&2
    exit 1
  fi
  if [[ -d $from ]]; then mkdir -p "$to"; elif [[ ! -e $to ]]; then mkdir -p "$(dirname "$to")"; : >"$to"; fi
  mount --rbind "$from" "$to"
done
