# A Debian in a folder that is kept, to build in: for chroot-build.sh and build-gpu-package.sh, which source it. Packages come from the
# host's own apt mirrors. Nothing stays mounted: what runs in it runs in mount and process namespaces of its own. Needs root.
# shellcheck shell=bash

# chroot_sources SUITE [COMPONENT...]: lines of a sources.list: the host's Debian repositories with the other suite's name, and its
# components, or these.
chroot_sources() {
  local suite=$1 host keyring=/usr/share/keyrings/debian-archive-keyring.gpg
  shift
  host=$(. /etc/os-release; [[ $ID != debian ]] || echo "$VERSION_CODENAME")   # others have no Debian repository of their own release
  # shellcheck disable=SC2016  # apt's own variables
  apt-get indextargets --format '$(REPO_URI) $(RELEASE) $(COMPONENT)' 'Created-By: Packages' |
    awk -v host="$host" -v suite="$suite" -v key="$keyring" -v own="$*" \
      '$2 ~ "^" host "(-updates|-security)?$" { sub(host, suite, $2); print "deb [signed-by=" key "] " $1 " " $2 " " (own == "" ? $3 : own) }' |
    sort -u
}

# chroot_make ROOT SUITE [COMPONENT...]: makes it, unless it is there.
chroot_make() {
  local root=$1 suite=$2 sources
  [[ ! -e $root/.made ]] || return 0
  sources=$(chroot_sources "${@:2}")
  [[ -n $sources ]] || { echo "$0: the host's apt names no Debian repository of its own release" >&2; return 1; }
  command -v mmdebstrap >/dev/null || scripts/deps.sh lab
  echo "making a $suite system in $root"
  rm -rf --one-file-system "$root"
  mkdir -p "$root"
  mmdebstrap --quiet --mode=root --variant=apt --include=ca-certificates "$suite" "$root" - <<<"$sources"
  touch "$root/.made"
}

# chroot_copy_tree ROOT: the working tree's tracked and new files to /src there, without touching files that are as they were: ninja goes
# by their times. What is gone here goes there too; build folders stay. The copy has no git: its commit is written down in it.
chroot_copy_tree() {
  local root=$1 file
  mkdir -p "$root/src"
  chroot_git ls-files -z --cached --others --exclude-standard | while IFS= read -r -d '' file; do
    [[ ! -e $file && ! -L $file ]] || printf '%s\0' "$file"
  done | tar --null -T - -c | tar -x -C "$root/src" --overwrite
  (cd "$root/src" && find . -path './build*' -prune -o \( -type f -o -type l \) -print | sed 's,^\./,,') | sort >"$root/.there"
  chroot_git ls-files --cached --others --exclude-standard | sort | comm -13 - "$root/.there" | (cd "$root/src" && xargs -r -d '\n' rm -f --)
  chroot_record_commit "$root/src/cmake/commit.txt"
}

# In a tree of another owner too: a build as root trusts it anyway, it runs what is in it.
chroot_git() { git -c safe.directory='*' "$@"; }

# chroot_record_commit FILE: the commit of the working tree, as cmake/version.cmake reads it. This machine may have no cmake, and a package
# without a commit in its version is older than every installed one. Without cmake a new file anywhere counts as a change.
chroot_record_commit() {
  local commit changed
  if command -v cmake >/dev/null; then
    cmake -D SOURCE="$PWD" -D RECORD="$1" -P cmake/version.cmake
    return
  fi
  commit=${MUSTER_COMMIT:-}
  if [[ -z $commit ]]; then
    commit=$(chroot_git -c log.showSignature=false log -1 --format='%ct %H') || { echo "$0: git names no commit of $PWD" >&2; return 1; }
    changed=$(chroot_git --no-optional-locks status --porcelain --untracked-files=all -- . ':!docs' ':!tests' ':!bench' ':!*.md')
    [[ -z $changed ]] || commit="$commit dirty"
  fi
  echo "$commit" >"$1"
}

# chroot_run ROOT [ARGUMENT...]: runs the script on standard input there, with these arguments.
chroot_run() {
  local root=$1
  shift
  cat >"$root/run.sh"
  # shellcheck disable=SC2016  # expanded by the inner shell
  unshare --mount --pid --fork --kill-child bash -c '
    set -euo pipefail
    mount --make-rprivate /
    mount -t proc proc "$0/proc"
    mount --rbind /dev "$0/dev"
    mount --rbind /sys "$0/sys"
    mount -t tmpfs tmpfs "$0/tmp"
    exec chroot "$0" /bin/bash /run.sh "$@"' "$root" "$@" </dev/null
}

# chroot_offer_cuda ROOT: /add-cuda.sh there installs nvcc 12.4 and nccl.h in a Debian 12. NVIDIA's toolkit in Debian 13's non-free needs no
# glibc newer than 2.34, so it can be had without the rest of Debian 13: of that come only the packages that it is made of.
chroot_offer_cuda() {
  local root=$1
  chroot_sources trixie main contrib non-free | grep ' trixie ' >"$root/etc/apt/sources.list.d/cuda.list"
  cat >"$root/etc/apt/preferences.d/cuda" <<'PREFERENCES'
Package: *
Pin: release n=trixie
Pin-Priority: 100

Package: libcub-dev libthrust-dev libcu++-dev
Pin: release n=trixie
Pin-Priority: 990
PREFERENCES
  cat >"$root/add-cuda.sh" <<'INSIDE'
#!/bin/bash
set -euo pipefail
[[ ! -e /usr/bin/nvcc || ! -e /usr/include/nccl.h ]] || exit 0
export DEBIAN_FRONTEND=noninteractive
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
chmod 755 "$work"
cd "$work"
apt-get -qq update
# It depends on a driver, and the driver of Debian 13 on its glibc. Nothing is run here.
mkdir -p no-driver/DEBIAN
printf 'Package: no-driver\nVersion: 1\nArchitecture: all\nMaintainer: none <root@localhost>\nProvides: libcuda-12.4-1\nDescription: stands for a driver\n' >no-driver/DEBIAN/control
dpkg-deb --build --root-owner-group no-driver no-driver.deb >/dev/null
apt-get install -qq -y --no-install-recommends ./no-driver.deb nvidia-cuda-toolkit
# The library asks for glibc 2.38, and is loaded at run time: the header is enough.
apt-get download -qq libnccl-dev
dpkg-deb --fsys-tarfile libnccl-dev_*.deb | tar -x -C / ./usr/include/nccl.h
INSIDE
  chmod 755 "$root/add-cuda.sh"
}
