# shellcheck shell=bash
# What ubuntu-like.sh and ubuntu.sh have in common: the archive in the lab, the spec, what is checked on node01.
archive_port=8098
on() { node_ssh node01 "$@" | tr -d '\r'; }

# The rest of the test sees this file as the keyring of Ubuntu's archive. It runs in a mount namespace of its own: the computer's folder stays
# as it is.
use_keyring() {  # use_keyring FILE
  mkdir "$work/keyrings"
  cp -a /usr/share/keyrings/. "$work/keyrings"
  cp "$1" "$work/keyrings/ubuntu-archive-keyring.gpg"
  mount --bind "$work/keyrings" /usr/share/keyrings
}
serve_archive() {  # serve_archive FOLDER
  python3 tests/e2e/ubuntu/serve_archive.py "$1" muster-quickstart 10.20.0.1 $archive_port >"$work/http.log" 2>&1 &
  archive_server=$!
  wait_until 30 $muster lab exec -- curl -s -o /dev/null "http://10.20.0.1:$archive_port/" || { cat "$work/http.log" >&2; die "the archive's server"; }
}
ubuntu_spec() {  # ubuntu_spec RECIPE PATH-OF-THE-MIRROR PACKAGE
  small_spec 1 "s/recipe: debian-12, kernel: cloud/recipe: $1, kernel: full/" 's/storage-local \]/storage-local, mpi, scheduler ]/' "s/^lab:/packages: [ $3 ]\nlab:/" \
    "s|^users:|  apt: { ubuntu: { mirror: http://10.20.0.1:$archive_port/$2 } }\nusers:|"
  echo "acceptance: { profile: lab }"
}
# Nothing is stored in the files behind the node's drives.
blank_drives() {
  local file files
  files=$($muster lab status --json | jq -r '.nodes[] | select(.name == "node01") | .drives[].file') && [[ -n $files ]] || return 1
  while read -r file; do [[ $(du -B1 "$file" | cut -f1) -eq 0 ]] || return 1; done <<<"$files"
}

os_release() { on sh -c "'. /etc/os-release; echo \"\$$1\"'"; }
boot_id() { on cat /proc/sys/kernel/random/boot_id; }
slot() { on sed -n "'s/.*muster.slot=\\([ab]\\).*/\\1/p'" /proc/cmdline; }

# One system: its release, its package sources (so many entries in that file, and none elsewhere), its services.
check_system() {  # check_system CODENAME SOURCES-FILE MIRROR ENTRIES KEY
  local unit state
  check "node01 is accepted" test "$(node_state node01)" = accepted
  check "its system is Ubuntu $1" test "$(os_release ID) $(os_release VERSION_CODENAME)" = "ubuntu $1"
  check "the RAM system booted the image's only kernel" test "$($muster image list --json | jq -r '.images[] | select(.name == "cpu") | .kernel')" = "$(on uname -r)"
  on cat "$2"
  check "package sources: $2 has the mirror" node_ssh node01 grep -qF "$3" "$2"
  check "and names its key" node_ssh node01 grep -qiF "'signed-by'" "$2" "&&" grep -qF "$5" "$2"
  check "the release is listed once" test "$(on sh -c "'cat /etc/apt/sources.list /etc/apt/sources.list.d/* 2>/dev/null'" | grep -cE "^(deb|URIs:) ")" = "$4"
  check "every list is fetched, without a warning" test "$(on "sudo apt-get -qq update --error-on=any 2>&1 && echo fetched")" = fetched
  check "with updates and security, main and universe" test "$(on apt-get indextargets --format "'\$(RELEASE)/\$(COMPONENT)'" "'Created-By: Packages'" | LC_ALL=C sort | tr '\n' ' ')" = \
    "$1-security/main $1-security/universe $1-updates/main $1-updates/universe $1/main $1/universe "
  check "sshd is a service of its own" test "$(on systemctl is-active ssh.service ssh.socket | tr '\n' ' ')" = "active inactive "
  check "and is so after the next boot" test "$(on systemctl is-enabled ssh.service)" = enabled
  for unit in apt-daily.timer apt-daily-upgrade.timer unattended-upgrades.service; do
    state=$(on systemctl is-enabled $unit || true)
    check "$unit is masked ($state)" test "$state" = masked
  done
  check "a job of Slurm runs" test "$(on sudo runuser -u mpi -- timeout 120 srun -N1 --chdir=/tmp hostname)" = node01
  check "no unit failed" fails_on node01 "systemctl --failed --no-legend --plain | grep -q ."
}

put_data() { node_ssh node01 sudo sh -c "'dd if=/dev/urandom of=/scratch/blob bs=1M count=4 2>/dev/null; echo kept >/state/kept; sync'"; }
data() { on sudo sh -c "'sha256sum /scratch/blob /state/kept /etc/ssh/ssh_host_ed25519_key'"; }
same_data() { data | diff - "$work/data"; }
