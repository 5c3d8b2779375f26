#!/bin/bash
# Real apt and dpkg, of this system, in a root that is thrown away: a run that was cut off, and a name that
# another package provides.
set -u
command -v dpkg-scanpackages >/dev/null || { echo "no dpkg-scanpackages: apt install dpkg-dev"; exit 77; }
[ -x "$BUILD/muster-agent" ] || { echo "no $BUILD/muster-agent"; exit 77; }
over=$WORK/over root=$WORK/root
mkdir -p "$over" "$root" && mount -t tmpfs tmpfs "$over" && mkdir "$over/upper" "$over/work" || exit 1
mount -t overlay overlay -o "lowerdir=/,upperdir=$over/upper,workdir=$over/work" "$root" || { echo "no overlay"; exit 77; }
mount --bind /proc "$root/proc" && mount --bind /dev "$root/dev" || exit 1
cp "$BUILD/muster-agent" "$root/usr/sbin/muster-agent"

# A repository of three packages that hold nothing.
repository=$root/srv/field
mkdir -p "$repository"
package() { # NAME VERSION [FIELD]
  mkdir -p "$WORK/deb/DEBIAN"
  printf 'Package: %s\nVersion: %s\nArchitecture: all\nMaintainer: none <none@example.org>\nDescription: empty\n%s' \
    "$1" "$2" "${3:+$3
}" >"$WORK/deb/DEBIAN/control"
  dpkg-deb --build "$WORK/deb" "$repository/$1_$2.deb" >/dev/null
}
package field-tables 1.0
package field-tool 1.0
package field-lib1t64 2.0-1 "Provides: field-lib1 (= 2.0-1)"
(cd "$repository" && dpkg-scanpackages . >Packages 2>/dev/null)
rm -rf "$root/etc/apt/sources.list" "$root/etc/apt/sources.list.d"
mkdir -p "$root/etc/apt/sources.list.d"
echo "deb [trusted=yes] file:/srv/field ./" >"$root/etc/apt/sources.list"
in_root() { chroot "$root" env DEBIAN_FRONTEND=noninteractive "$@"; }
in_root apt-get -q update >/dev/null 2>&1 || { echo "apt-get update failed"; exit 1; }
in_root apt-get -q -y install field-tables >/dev/null 2>&1 || { echo "apt-get install failed"; exit 1; }

step() { # NAME: one line of what the agent says
  echo "{\"steps\":[{\"id\":\"p\",\"module\":\"package\",\"params\":{\"names\":[\"$1\"]}}]}" | in_root muster-agent apply
}
interrupted() {
  awk 'BEGIN { RS = ""; ORS = "\n\n" } /^Package: field-tables\n/' "$root/var/lib/dpkg/status" |
    sed 's/^Status:.*/Status: install ok unpacked/' >"$root/var/lib/dpkg/updates/0001"
}
failed=0
expect() { # WHAT COMMAND...
  local what=$1
  shift
  "$@" || { echo "not so: $what"; failed=1; }
}

interrupted
expect "apt refuses" sh -c "! chroot $root apt-get -q -y install field-tool >/dev/null 2>&1"
expect "a tool is installed after an interrupted run" step field-tool
expect "the journal is gone" sh -c "! ls $root/var/lib/dpkg/updates/0001 2>/dev/null"
interrupted
expect "what the journal says is only unpacked gets configured" step field-tables
expect "dpkg has no journal left" sh -c "! ls $root/var/lib/dpkg/updates/0001 2>/dev/null"
expect "a name that another package provides is installed" step field-lib1
expect "and is so afterwards" step field-lib1
expect "by its own name" in_root dpkg-query -W field-lib1t64
exit $failed
