#!/bin/bash
# Real apt: the host's sources name the archive's key by another name than the playbooks do.
. "$SRC/tests/field/root.sh"
needs apt-get dpkg-scanpackages gpg
export GNUPGHOME=$WORK/gpg
mkdir -m 700 "$GNUPGHOME"
gpg -q --batch --passphrase '' --quick-gen-key field@example.org rsa2048 sign 2> /dev/null || { echo "needs a gpg that makes keys"; exit 77; }
repository=$root/srv/field
for part in main contrib; do
  mkdir -p "$repository/dists/trixie/$part/binary-$(dpkg --print-architecture)"
  : > "$repository/dists/trixie/$part/binary-$(dpkg --print-architecture)/Packages"
done
release=$repository/dists/trixie/InRelease
(cd "$repository/dists/trixie" && {
  printf 'Suite: trixie\nCodename: trixie\nComponents: main contrib\nArchitectures: %s\nDate: %s\nSHA256:\n' \
    "$(dpkg --print-architecture)" "$(date -Ru | sed 's/+0000/UTC/')"
  find . -name Packages -printf '%P\n' | while read -r file; do
    printf ' %s %s %s\n' "$(sha256sum < "$file" | cut -d' ' -f1)" "$(stat -c %s "$file")" "$file"
  done
}) | gpg -q --batch --clearsign > "$release"
rings=$root/usr/share/keyrings
gpg -q --export > "$rings/field-archive.gpg"
cp "$rings/field-archive.gpg" "$rings/field-archive.pgp"
rm -rf "$root/etc/apt/sources.list" "$root/etc/apt/sources.list.d"
mkdir -p "$root/etc/apt/sources.list.d"
sed -i 's/^VERSION_CODENAME=.*/VERSION_CODENAME=trixie/' "$root/etc/os-release"
source_of() { printf 'Types: deb\nURIs: file:/srv/field\nSuites: trixie\nComponents: main\nSigned-By: %s\n' "$1"; }
params() { echo '{"name":"more","components":["contrib"],"signed_by":"/usr/share/keyrings/field-archive.gpg"}'; }
reads() { in_root apt-get -q update > /dev/null 2>&1; }

source_of /usr/share/keyrings/field-archive.pgp > "$root/etc/apt/sources.list.d/debian.sources"
expect "apt reads its lists before" reads
expect "the step" agent apply apt_repository "$(params)" > /dev/null
expect "apt reads its lists afterwards" reads
expect "the step holds" agent check apt_repository "$(params)" > /dev/null
# Another key: refused, and apt works as before.
rm "$root"/etc/apt/sources.list.d/muster-*
gpg -q --batch --passphrase '' --quick-gen-key other@example.org rsa2048 sign 2> /dev/null
gpg -q --export > "$rings/field-archive.pgp"
refused() { ! agent apply apt_repository "$(params)" > /dev/null 2>&1; }
expect "another key is refused" refused
expect "apt reads its lists all the same" reads
exit $wrong
