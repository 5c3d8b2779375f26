#!/usr/bin/env bash
# Builds muster and runs its unit tests on another Debian: scripts/chroot-build.sh debian-13|debian-12 [MUSTER_TESTS_ARGUMENT...]
# The Debian lies in a folder that is kept, so that the second time only changed files are compiled: MUSTER_CHROOT_CACHE, else
# ~/.cache/muster/chroot. Packages come from the host's own apt mirrors. Needs root. What is built is the working tree's tracked
# and new files. Nothing stays mounted: everything happens in mount and process namespaces of its own.
set -euo pipefail
cd "$(dirname "$0")/.."
case "${1:-}" in
  debian-12) suite=bookworm ;;
  debian-13) suite=trixie ;;
  *) echo "usage: scripts/chroot-build.sh debian-13|debian-12 [MUSTER_TESTS_ARGUMENT...]" >&2; exit 2 ;;
esac
shift
[[ $EUID -eq 0 ]] || { echo "chroot-build.sh: needs root (chroot)" >&2; exit 2; }
command -v mmdebstrap >/dev/null || scripts/deps.sh lab
root=${MUSTER_CHROOT_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/muster/chroot}/$suite

# The host's Debian repositories, with the other suite's name.
host=$(. /etc/os-release; echo "$VERSION_CODENAME")
keyring=/usr/share/keyrings/debian-archive-keyring.gpg
sources=$(apt-get indextargets --format '$(REPO_URI) $(RELEASE) $(COMPONENT)' 'Created-By: Packages' |
  awk -v host="$host" -v suite="$suite" -v key="$keyring" \
    '$2 ~ "^" host "(-updates|-security)?$" { sub(host, suite, $2); print "deb [signed-by=" key "] " $1 " " $2 " " $3 }' | sort -u)
[[ -n $sources ]] || { echo "chroot-build.sh: the host's apt names no Debian repository of $host" >&2; exit 1; }

if [[ ! -e $root/.made ]]; then
  echo "making a $suite system in $root"
  rm -rf --one-file-system "$root"
  mkdir -p "$root"
  mmdebstrap --quiet --mode=root --variant=apt --include=ca-certificates "$suite" "$root" - <<<"$sources"
  touch "$root/.made"
fi

# The tree, without touching files that are as they were: ninja goes by their times.
mkdir -p "$root/src"
git ls-files -z --cached --others --exclude-standard | while IFS= read -r -d '' file; do
  [[ ! -e $file && ! -L $file ]] || printf '%s\0' "$file"
done | tar --null -T - -c | tar -x -C "$root/src" --overwrite
# What is gone here goes there too; the build folder stays.
(cd "$root/src" && find . -path ./build -prune -o \( -type f -o -type l \) -print | sed 's,^\./,,') | sort >"$root/.there"
git ls-files --cached --others --exclude-standard | sort | comm -13 - "$root/.there" | (cd "$root/src" && xargs -r -d '\n' rm -f --)

cat >"$root/build-and-test.sh" <<'INSIDE'
set -euo pipefail
export HOME=/root LC_ALL=C.UTF-8 PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
cd /src
scripts/deps.sh build lab test
g++ --version | head -n 1
scripts/build.sh dev
build/muster_tests "$@"
INSIDE
exec unshare --mount --pid --fork --kill-child bash -c '
  set -euo pipefail
  mount --make-rprivate /
  mount -t proc proc "$0/proc"
  mount --rbind /dev "$0/dev"
  mount --rbind /sys "$0/sys"
  mount -t tmpfs tmpfs "$0/tmp"
  exec chroot "$0" /bin/bash /build-and-test.sh "$@"' "$root" "$@"
