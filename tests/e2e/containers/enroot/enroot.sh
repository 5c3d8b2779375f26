#!/bin/bash
# Stand-in for enroot, over unsquashfs and unshare: version, create, start, list, remove. It reads the configuration, mounts.d, environ.d
# and hooks.d of /etc/enroot in the order of the real one, needs user namespaces as that does, and is no container engine for work.
set -eu -o pipefail
fail() { echo "[ERROR] $*" >&2; exit 1; }

# A variable of the environment comes before the file; a value is read by the shell.
while read -r key value; do
  [[ $key == ENROOT_* ]] || continue
  [[ -n ${!key+set} ]] || eval "export $key=\"$value\""
done < <(cat /etc/enroot/enroot.conf /etc/enroot/enroot.conf.d/*.conf 2>/dev/null || true)
: "${ENROOT_RUNTIME_PATH:=${XDG_RUNTIME_DIR:-/run/user/$(id -u)}/enroot}" "${ENROOT_DATA_PATH:=$HOME/.local/share/enroot}"
: "${ENROOT_CACHE_PATH:=$HOME/.cache/enroot}" "${ENROOT_TEMP_PATH:=/tmp}"
for folder in "$ENROOT_RUNTIME_PATH" "$ENROOT_DATA_PATH" "$ENROOT_CACHE_PATH"; do
  [[ -d $folder ]] || install -d -m 700 "$folder" || fail "Could not create directory: $folder"
done
yes() { [[ ${1:-} =~ ^(y|yes|on|true|1)$ ]]; }

unpack() {   # unpack IMAGE FOLDER
  [[ -f $1 ]] || fail "No such file or directory: $1"
  unsquashfs -quiet -no-progress -no-xattrs -d "$2" "$1" >/dev/null || fail "Not an image, or no room: $1"
}
create() {
  local name="" force=""
  while [[ ${1:-} == -* ]]; do
    case $1 in -n | --name) name=$2; shift 2 ;; --name=*) name=${1#*=}; shift ;; -f | --force) force=yes; shift ;; *) fail "Invalid option: $1" ;; esac
  done
  [[ -n ${1:-} ]] || fail "Invalid argument"
  [[ -n $name ]] || { name=$(basename "$1"); name=${name%.*}; }
  if [[ -e $ENROOT_DATA_PATH/$name ]]; then
    [[ -n $force ]] || fail "File already exists: $ENROOT_DATA_PATH/$name"
    rm -rf "${ENROOT_DATA_PATH:?}/$name"
  fi
  unpack "$1" "$ENROOT_DATA_PATH/$name"
}

# The caller's environment, a name or an image, and a command. What hooks add goes over two files in the runtime folder.
start() {
  local options=() mounts=() variables=() given own_root="" root image="" words
  while [[ ${1:-} == -* ]]; do
    case $1 in
      -r | --root) own_root=yes; shift ;;
      -w | --rw) shift ;;
      -m | --mount) mounts+=("$2"); shift 2 ;;
      --mount=*) mounts+=("${1#*=}"); shift ;;
      -e | --env) variables+=("$2"); shift 2 ;;
      --env=*) variables+=("${1#*=}"); shift ;;
      -c | --conf | --rc) shift 2 ;;
      *) fail "Invalid option: $1" ;;
    esac
  done
  [[ -n ${1:-} ]] || fail "Invalid argument"
  root=$ENROOT_DATA_PATH/$1
  if [[ ! -d $root ]]; then
    [[ -f $1 ]] || fail "No such file or directory: $root"
    image=$1 root=$ENROOT_RUNTIME_PATH/root
    mkdir -p "$root"
  fi
  words=$ENROOT_RUNTIME_PATH/$$
  { echo "ENROOT_IMAGE=$1" >"$words.environ"; } 2>/dev/null ||
    fail "Could not write $words.environ: is there no space left in $ENROOT_RUNTIME_PATH?"
  cat /etc/enroot/environ.d/*.env 2>/dev/null >>"$words.environ" || true
  for given in "${variables[@]}"; do
    [[ $given == *=* ]] || given=$given=${!given-}
    echo "$given" >>"$words.environ"
  done
  shift
  # As the real ones: SOURCE:TARGET[:OPTIONS], or a line of fstab.
  { cat /etc/enroot/mounts.d/*.fstab 2>/dev/null || true
    yes "${ENROOT_MOUNT_HOME:-}" && [[ -n ${HOME:-} && -d $HOME ]] && echo "$HOME $HOME none x-create=dir,bind,rw"
    for given in "${mounts[@]}"; do
      if [[ $given == *" "* ]]; then echo "$given"; else
        IFS=: read -r from to how <<<"$given"
        echo "$from ${to:-$from} none x-create=auto,bind,${how:-rw}"
      fi
    done; } >"$words.mounts"
  ENROOT_PID=$$ ENROOT_ROOTFS=$root ENROOT_ENVIRON=$words.environ ENROOT_MOUNTS=$words.mounts image=$image \
    exec enroot-nsenter ${own_root:+--root} -- "$BASH" "$0" inside "$@"
}

# In the namespaces. The tree of an image is in memory that is gone with them.
inside() {
  local variables file
  export ENROOT_PID ENROOT_ROOTFS ENROOT_ENVIRON ENROOT_MOUNTS
  trap 'rm -f "$ENROOT_ENVIRON" "$ENROOT_MOUNTS"' EXIT
  if [[ -n $image ]]; then
    mount -t tmpfs -o mode=755 tmpfs "$ENROOT_ROOTFS"
    unpack "$image" "$ENROOT_ROOTFS/tree"
    ENROOT_ROOTFS+=/tree
  fi
  mount --rbind "$ENROOT_ROOTFS" "$ENROOT_ROOTFS"
  cd "$ENROOT_ROOTFS"
  mkdir -p dev proc sys tmp run etc
  mount --rbind /proc proc
  mount --rbind /sys sys
  mount -t tmpfs tmpfs run
  mount -t tmpfs -o mode=1777 tmpfs tmp
  if yes "${ENROOT_RESTRICT_DEV:-}"; then
    mount -t tmpfs -o mode=755 tmpfs dev
    for file in null zero full random urandom tty; do : >dev/$file; mount --bind /dev/$file dev/$file; done
    mkdir dev/shm
    mount --rbind /dev/shm dev/shm
  else
    mount --rbind /dev dev
  fi
  while IFS= read -r file; do [[ -z $file || $file == \#* ]] || export "${file?}"; done <"$ENROOT_ENVIRON"
  for file in /etc/enroot/hooks.d/*.sh; do
    [[ -e $file ]] || continue
    "$file" || fail "Command failed: $file"
  done
  enroot-mount --root "$ENROOT_ROOTFS" "$ENROOT_MOUNTS"
  mapfile -t variables < <(grep -v '^\(#\|$\)' "$ENROOT_ENVIRON")
  rm -f "$ENROOT_ENVIRON" "$ENROOT_MOUNTS"
  [[ -n $* ]] || set -- /bin/sh
  exec env -i PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin HOME="${HOME:-/}" "${variables[@]}" chroot . "$@"
}

verb=${1:-help}
shift || true
case $verb in
  version) echo "STANDIN_VERSION" ;;
  create) create "$@" ;;
  start) start "$@" ;;
  inside) inside "$@" ;;
  list) ls -1 "$ENROOT_DATA_PATH" ;;
  remove)
    while [[ ${1:-} == -* ]]; do shift; done
    for name; do [[ -d $ENROOT_DATA_PATH/$name ]] || fail "No such file or directory: $ENROOT_DATA_PATH/$name"; rm -rf "${ENROOT_DATA_PATH:?}/$name"; done
    ;;
  *) fail "the stand-in does not support enroot $verb" ;;
esac
