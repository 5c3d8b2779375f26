#!/usr/bin/env bash
# Ubuntu 24.04 and 22.04 themselves, from UBUNTU_MIRROR=URL: an image of each, a node that is accepted with it; exit 77 where there is no mirror
# The key: UBUNTU_KEYRING=FILE, else that of the package ubuntu-keyring.
# stands on: agent/boot/{kernel_modules,ram_init}* agent/image agent/steps/packages agent/steps/system controller/engines/local_engine*
# stands on: controller/image controller/power/redfish* controller/spec/apt_origin* controller/spec/reader/reader_apt*
# stands on: images/ubuntu-22.04.yaml images/ubuntu-24.04.yaml playbooks/acceptance/lab.yaml playbooks/base.yaml playbooks/firewall.yaml
# stands on: playbooks/ssh.yaml playbooks/storage-local.yaml tests/e2e/ubuntu
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
ubuntu_spec ubuntu-24.04 ubuntu hello >"$work/cluster.yaml"
export no_proxy="${no_proxy:+$no_proxy,}10.20.0.1"   # the lab's package proxy knows the mirrors of the host only
lab_up
serve_archive "$work/www"
is_ubuntu() {  # is_ubuntu VERSION LOG-OF-THE-BUILD
  check "this is Ubuntu $1, with its kernel" sh -c "case '$(os_release PRETTY_NAME) $(on uname -r)' in 'Ubuntu $1'*-generic) ;; *) exit 1 ;; esac"
  check "the build says which kernel modules there are, and which are not" grep -E 'RAM system: [0-9]+ kernel modules' "$2"
}
mirror=http://10.20.0.1:$archive_port/ubuntu
$muster up "$work/cluster.yaml" --yes --report "$work/report" | tee "$work/up.log"
check_system noble /etc/apt/sources.list.d/ubuntu.sources "$mirror" 1
is_ubuntu 24.04 "$work/up.log"
$muster up "$work/cluster.yaml" --yes --report "$work/again" >"$work/again.log" || { tail -n 40 "$work/again.log"; die "the second up"; }
check "the second time there is nothing to do" grep -q "nothing changed" "$work/again.log"

# The other release, on the same machine.
put_data
data >"$work/data"
sed -i 's/recipe: ubuntu-24.04/recipe: ubuntu-22.04/' "$work/cluster.yaml"
$muster up "$work/cluster.yaml" --yes --report "$work/other" >"$work/other.log" || { tail -n 40 "$work/other.log"; die "the other recipe"; }
$muster reimage node01 --yes --report "$work/reimaged" >"$work/reimage.log" || { tail -n 40 "$work/reimage.log"; die "reimage"; }
check_system jammy /etc/apt/sources.list "$mirror" 3
is_ubuntu 22.04 "$work/other.log"
check "its data, /state and its host key are as they were" same_data
