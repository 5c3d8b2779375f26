#!/usr/bin/env bash
# Ubuntu 24.04 and 22.04 themselves, from UBUNTU_MIRROR=URL: an image of each, a node that is accepted with it; exit 77 where there is no mirror
# needs: UBUNTU_MIRROR, a mirror of Ubuntu's archive
# The key: UBUNTU_KEYRING=FILE, else that of the package ubuntu-keyring.
# stands on: agent/boot/{kernel_modules,ram_init}* agent/image agent/steps/packages agent/steps/system controller/engines/local_engine*
# stands on: controller/image controller/power/redfish* controller/spec/apt_origin* controller/spec/reader/reader_apt*
# stands on: images/ubuntu-22.04.yaml images/ubuntu-24.04.yaml playbooks/acceptance/lab.yaml playbooks/base.yaml playbooks/firewall.yaml
# stands on: playbooks/mpi.yaml playbooks/scheduler.yaml playbooks/ssh.yaml playbooks/storage-local.yaml tests/e2e/ubuntu
keyring=${UBUNTU_KEYRING:-/usr/share/keyrings/ubuntu-archive-keyring.gpg}
[[ -n ${UBUNTU_MIRROR:-} ]] || { echo "left out: no mirror of Ubuntu's archive: set UBUNTU_MIRROR=http://HOST/ubuntu"; exit 77; }
[[ -s $keyring ]] || { echo "left out: no key of Ubuntu's archive: install ubuntu-keyring, or set UBUNTU_KEYRING=FILE"; exit 77; }
[[ -n ${UBUNTU_OWN_MOUNTS:-} ]] || UBUNTU_OWN_MOUNTS=1 exec unshare --mount "$BASH" "$0" "$@"
source "$(dirname "$0")/lib.sh"
source tests/e2e/ubuntu/checks.sh
use_keyring "$keyring"

# The lab's machines reach the controller only: it fetches from the mirror what they need.
mkdir "$work/www"
jq -n --arg mirror "${UBUNTU_MIRROR%/}" '{ubuntu: $mirror}' >"$work/www/origins.json"
export no_proxy="${no_proxy:+$no_proxy,}10.20.0.1"   # the lab's package proxy knows the mirrors of the host only
release() {  # release VERSION CODENAME SOURCES-FILE ENTRIES
  stage "Ubuntu $1"
  ubuntu_spec "ubuntu-$1" ubuntu hello >"$work/cluster.yaml"
  lab_up
  serve_archive "$work/www"
  $muster up "$work/cluster.yaml" --yes --report "$work/report-$1" | tee "$work/up.log"
  check "the build says which kernel modules there are, and which are not" grep -E 'RAM system: [0-9]+ kernel modules' "$work/up.log"
  check_system "$2" "$3" "http://10.20.0.1:$archive_port/ubuntu" "$4" /usr/share/keyrings/ubuntu-archive-keyring.gpg
  check "this is Ubuntu itself, with its kernel" sh -c "case '$(os_release PRETTY_NAME) $(on uname -r)' in 'Ubuntu $1'*-generic) ;; *) exit 1 ;; esac"
  $muster up "$work/cluster.yaml" --yes --report "$work/again-$1" >"$work/again.log" || { tail -n 40 "$work/again.log"; die "the second up"; }
  check "the second time there is nothing to do" grep -q "nothing changed" "$work/again.log"
}
release 24.04 noble /etc/apt/sources.list.d/ubuntu.sources 1
kill "$archive_server" && wait "$archive_server" || true
note_used
$muster lab down
release 22.04 jammy /etc/apt/sources.list 3
