# shellcheck shell=bash
# Packages without any program of a vendor, and a signed archive of them. Who sources it sets: here (the folder of the files that `put` takes),
# tree (a folder for the package that is being made), pool (the folder that packages go into), stands_for (the packages' description).
put() {   # put MODE FILE PATH: into the package that is being made
  install -D -m "$1" "$here/$2" "$tree$3"
}
unit() {   # unit NAME TEXT: a service, or of another kind by its NAME.KIND
  local name=$1
  [[ $name == *.* ]] || name+=.service
  mkdir -p "$tree/usr/lib/systemd/system"
  printf '%b' "$2" >"$tree/usr/lib/systemd/system/$name"
}
package() {   # package NAME VERSION DEPENDS
  mkdir -p "$tree/DEBIAN"
  printf 'Package: %s\nVersion: %s\nArchitecture: amd64\nMaintainer: nobody <nobody@example.org>\nDescription: %s\n%s' \
    "$1" "$2" "$stands_for" "${3:+Depends: $3
}" >"$tree/DEBIAN/control"
  dpkg-deb --root-owner-group -b "$tree" "$pool/$1_${2//:/%3a}_amd64.deb" >/dev/null
  rm -rf "$tree"
}
archive() {   # archive KEY-FILE: the pool's index, signed by a key that is made for it; the public one goes into the file
  local deb
  export GNUPGHOME=$tree.gnupg
  mkdir -m 700 "$GNUPGHOME"
  gpg --batch --quiet --passphrase '' --quick-generate-key 'SIMULATED GPU archive of a lab <stub@example.org>' ed25519 sign never
  (
    cd "$pool" || exit
    for deb in *.deb; do
      dpkg-deb -f "$deb"
      printf 'Filename: ./%s\nSize: %s\nSHA256: %s\n\n' "$deb" "$(stat -c %s "$deb")" "$(sha256sum "$deb" | cut -d ' ' -f 1)"
    done >Packages
    printf 'Origin: SIMULATED GPU\nSuite: ./\nDate: %s\nSHA256:\n %s %s Packages\n' "$(LC_ALL=C date -u -R)" \
      "$(sha256sum Packages | cut -d ' ' -f 1)" "$(stat -c %s Packages)" >Release
    gpg --batch --quiet --clearsign -o InRelease Release
  )
  gpg --batch --armor --export >"$1"
  gpgconf --kill gpg-agent >/dev/null 2>&1 || true
}
