#!/usr/bin/env bash
# images and a node of an archive that looks like Ubuntu 24.04's: key, components, pockets, deb822, kernel meta package, ssh.socket; Ubuntu itself is not run
# What a look-alike cannot show: docs/stack.md. The packages are those of this computer's Debian, under Ubuntu's release and names.
# stands on: agent/boot/{kernel_modules,ram_init}* agent/image agent/steps/files/directory* agent/steps/packages
# stands on: agent/steps/services/{kept_directory,slurm}* agent/steps/system controller/engines/local_engine*
# stands on: controller/image controller/image/service controller/power/redfish* controller/spec/apt_origin* controller/spec/reader/reader_apt*
# stands on: images/ubuntu-24.04.yaml playbooks/acceptance/lab.yaml playbooks/base.yaml playbooks/firewall.yaml playbooks/mpi.yaml
# stands on: playbooks/scheduler.yaml playbooks/ssh.yaml playbooks/storage-local.yaml tests/e2e/ubuntu
[[ -n ${UBUNTU_OWN_MOUNTS:-} ]] || UBUNTU_OWN_MOUNTS=1 exec unshare --mount "$BASH" "$0" "$@"
echo "a look-alike made of Debian's packages; Ubuntu itself was not run"
source "$(dirname "$0")/lib.sh"
source tests/e2e/ubuntu/checks.sh
unset MUSTER_IMAGE_CACHE   # an image of an earlier run has the key of that run's archive
for tool in gpg dpkg-deb unshare; do command -v $tool >/dev/null || die "$tool is missing"; done

stage "the archive"
export GNUPGHOME=$work/gnupg
mkdir -m 700 "$GNUPGHOME"
for key in archive foreign; do gpg --batch --quiet --passphrase '' --quick-generate-key "$key <$key@example.org>" ed25519 sign never; done
python3 tests/e2e/ubuntu/make_archive.py "$work/www" archive@example.org foreign@example.org
gpg --batch --export archive@example.org >"$work/archive.gpg"
use_keyring "$work/archive.gpg"

ubuntu_spec ubuntu-24.04 good/ubuntu hello >"$work/cluster.yaml"
export no_proxy="${no_proxy:+$no_proxy,}10.20.0.1"   # the lab's package proxy knows the mirrors of the host only
stage "a lab"
lab_up
serve_archive "$work/www"
check "the spec is valid" $muster spec check "$work/cluster.yaml"

stage "what must be refused, before anything is written to a node"
refused() {  # refused ARCHIVE PATTERN WHAT
  local rc=0
  sed "s#/good/ubuntu#/$1/ubuntu#" "$work/cluster.yaml" >"$work/$1.yaml"
  $muster up "$work/$1.yaml" --yes >"$work/$1.log" 2>&1 || rc=$?
  tail -n 4 "$work/$1.log" | cut -c 1-400
  check "$3 is refused" test $rc -ne 0
  check "and the reason is said: $2" grep -qE "$2" "$work/$1.log"
  check "nothing is written on the node's drives" blank_drives
}
rm "$work/keyrings/ubuntu-archive-keyring.gpg"
refused good 'install ubuntu-keyring' "an image where this computer has no key of the archive"
cp "$work/archive.gpg" "$work/keyrings/ubuntu-archive-keyring.gpg"
refused foreign 'NO_PUBKEY|not signed' "an archive that another key signed"
refused no-universe "component 'universe'" "an archive without a component that the recipe names"
refused no-chrony "E: .*[Pp]ackage '?chrony" "an archive without a package that the recipe names"

stage "an image, and a node"
$muster up "$work/cluster.yaml" --yes --report "$work/report" | tee "$work/up.log"
stage "what the node has"
check "the build says which kernel modules there are" grep -qE 'RAM system: [0-9]+ kernel modules' "$work/up.log"
check_system noble /etc/apt/sources.list.d/ubuntu.sources "http://10.20.0.1:$archive_port/good/ubuntu" 1 /usr/share/keyrings/ubuntu-archive-keyring.gpg
check "they are deb822" node_ssh node01 grep -q "'^Types: deb'" /etc/apt/sources.list.d/ubuntu.sources
check "this is the look-alike" test "$(os_release PRETTY_NAME)" = "Look-alike of Ubuntu 24.04"
check "the kernel is the one behind the meta package" node_ssh node01 dpkg-query -W linux-image-generic linux-firmware
image=$MUSTER_LAB_DIR/state/images/cpu/current
check "its NVMe driver is a module, so the image has an initrd" test -s "$image/initrd"
check "the declared package is the newer one of the security pocket" test "$(on dpkg-query -W -f "'\${Version}'" hello)" = 99-0ubuntu0.1
check "fio comes from universe" sh -c "$muster lab ssh node01 -- apt-cache policy fio | grep -q noble/universe"
check "what was measured is in the report" jq -e 'any(.nodes[].checks[]; .verdict == "pass" and (.measured | type) == "number")' "$work/report/report.json"
$muster up "$work/cluster.yaml" --yes --report "$work/again" >"$work/again.log" || { tail -n 40 "$work/again.log"; die "the second up"; }
check "the second time there is nothing to do" grep -q "nothing changed" "$work/again.log"

# The node gets both, then, in place, an image of that mirror.
stage "a mirror that the site signs again, with its key, and another package"
put_data
data >"$work/data"
first_boot=$(boot_id) first_slot=$(slot)
key=$(gpg --batch --armor --export foreign@example.org | jq -Rs .)   # a text in quotation marks, with \n for its lines
sed -i -e 's/^packages: .*/packages: [ hello, tree ]/' -e "s|/good/ubuntu }|/foreign/ubuntu, key: ${key//\\/\\\\} }|" "$work/cluster.yaml"
signed_by=/etc/apt/keyrings/muster-mirror.asc
$muster up "$work/cluster.yaml" --yes --report "$work/more" >"$work/more.log" || { tail -n 40 "$work/more.log"; die "one package more"; }
check "the package is there, and the node was not restarted" test "$(on tree --version | cut -c 1-4) $(boot_id)" = "tree $first_boot"
check_system noble /etc/apt/sources.list.d/ubuntu.sources "http://10.20.0.1:$archive_port/foreign/ubuntu" 1 $signed_by
stage "re-imaged in place"
$muster plan --kind reimage --limit node01 | tee "$work/plan.log"
check "the plan says that the new image goes in place" grep -q 'in place' "$work/plan.log"
$muster reimage node01 --yes --report "$work/reimaged" >"$work/reimage.log" || { tail -n 40 "$work/reimage.log"; die "reimage"; }
check_system noble /etc/apt/sources.list.d/ubuntu.sources "http://10.20.0.1:$archive_port/foreign/ubuntu" 1 $signed_by
check "it runs from the other slot" test -n "$first_slot" -a "$(slot)" != "$first_slot"
check "its image is of that mirror, verified by its key" jq -e --arg m "http://10.20.0.1:$archive_port/foreign/ubuntu" \
  '.inputs.recipe.mirror == $m and (.inputs.recipe.key | length) > 0' "$image/build.json"
check "the declared package is there again" node_ssh node01 test -x /usr/bin/tree
check "its data, /state and its host key are as they were" same_data
$muster up "$work/cluster.yaml" --yes --report "$work/last" >"$work/last.log" || { tail -n 40 "$work/last.log"; die "the last up"; }
check "and there is nothing to do" grep -q "nothing changed" "$work/last.log"
