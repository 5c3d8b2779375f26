#!/usr/bin/env bash
# playbook gpu-vendor, driver 570, 580 and 595, with a private archive of stub packages: its key, names, exact versions, a mixed set refused, DKMS
# No vendor archive is reachable here. Versions, pins and refusals are apt's own doing, the module is DKMS'; the stubs do nothing else. The names are
# those of NVIDIA's archive for Debian: all with the branch in 570, only the driver's in 580, none in 595. Images are built with each of the three; a
# node is installed with 580, whose names are mixed. 570 and 595 take about four minutes more each.
# stands on: agent/steps/not_applicable* agent/steps/packages controller/engines/local_engine* controller/image/layers* controller/image/service/bake* controller/power/redfish*
# stands on: images/debian-13.yaml playbooks/base.yaml playbooks/firewall.yaml playbooks/gpu-vendor.yaml playbooks/ssh.yaml
# stands on: playbooks/storage-local.yaml
source "$(dirname "$0")/lib.sh"
unset MUSTER_IMAGE_CACHE   # the archive has another key in each run, and so has its image
command -v gpg >/dev/null || die "apt-get install gnupg"
port=8099
# Of each branch the wanted version, and a newer one that must not be taken.
declare -A driver=([570]=570.172.08 [580]=580.95.05 [595]=595.10.01) newer=([570]=570.211.01 [580]=580.105.08 [595]=595.20.02)
vars="nvidia_repository: \"http://10.20.0.1:$port/good\", nvidia_key_url: \"http://10.20.0.1:$port/key.asc\", nvidia_driver: \"${driver[580]}\", \
nvidia_cuda: 13-0, nvidia_cuda_major: \"13\", nvidia_nccl: 2.28.3-1+cuda13.0, nvidia_dcgm: \"1:4.4.1-1\""
baked="base, ssh, firewall, storage-local, gpu-vendor"

stage "the archive"
export GNUPGHOME=$work/gnupg
mkdir -m 700 "$GNUPGHOME"
gpg --batch --quiet --passphrase '' --quick-generate-key 'Stub archive <stub@example.org>' ed25519 sign never
stub() {   # name version depends; the files below $work/stub are its content
  local dir=$work/stub
  mkdir -p "$dir/DEBIAN"
  printf 'Package: %s\nVersion: %s\nArchitecture: amd64\nMaintainer: nobody <nobody@example.org>\nDescription: stub for a test\n%s' "$1" "$2" "${3:+Depends: $3
}" >"$dir/DEBIAN/control"
  dpkg-deb --root-owner-group -b "$dir" "$work/pool/$1_${2//:/%3a}_amd64.deb" >/dev/null
  rm -rf "$dir"
}
mkdir -p "$work/pool"
unit() {   # unit NAME: in the package that is made next
  mkdir -p "$work/stub/usr/lib/systemd/system"
  printf '[Service]\nExecStart=/bin/false\n[Install]\nWantedBy=multi-user.target\n' >"$work/stub/usr/lib/systemd/system/$1.service"
}
driver_of() {   # driver_of VERSION BRANCH-OF-DRIVER BRANCH-OF-FABRIC: the packages of one version, with those suffixes
  local v=$1 src=$work/stub/usr/src/nvidia-$1 name
  mkdir -p "$src" "$work/stub/DEBIAN"
  printf 'PACKAGE_NAME="nvidia"\nPACKAGE_VERSION="%s"\nBUILT_MODULE_NAME[0]="nvidia"\nDEST_MODULE_LOCATION[0]="/updates/dkms"\nAUTOINSTALL="yes"\n' "$v" >"$src/dkms.conf"
  echo 'obj-m := nvidia.o' >"$src/Makefile"
  printf '#include <linux/module.h>\nMODULE_LICENSE("Dual MIT/GPL");\nMODULE_VERSION("%s");\nMODULE_DESCRIPTION("stub");\n' "$v" >"$src/nvidia.c"
  printf '#!/bin/sh\ndkms add -m nvidia -v %s || true\n' "$v" >"$work/stub/DEBIAN/postinst"
  chmod 755 "$work/stub/DEBIAN/postinst"
  stub nvidia-kernel-open-dkms "$v-1" 'dkms, make, gcc'
  unit nvidia-persistenced
  stub nvidia-persistenced "$v-1"
  unit nvidia-fabricmanager
  stub "nvidia-fabricmanager$3" "$v-1"
  for name in libnvidia-nscq libnvsdm nvidia-imex; do stub "$name$3" "$v-1"; done
  stub libcuda1 "$v-1"
  stub "nvidia-open$2" "$v-1" "nvidia-kernel-open-dkms (>= $v), libcuda1 (>= $v), nvidia-persistenced (>= $v)"
  [[ -z $2 ]] || stub nvidia-open "$v-1" "nvidia-open$2 (>= $v)"
}
for branch in 570 580 595; do
  of_driver=-$branch of_fabric=""
  [[ $branch -le 580 ]] || of_driver=""
  [[ $branch -gt 570 ]] || of_fabric=-$branch
  for v in "${driver[$branch]}" "${newer[$branch]}"; do driver_of "$v" "$of_driver" "$of_fabric"; done
done
# What NVIDIA's own package of this kind does.
mkdir -p "$work/stub/etc/apt/preferences.d"
printf 'Package: nvidia-* libnvidia-* libcuda1\nPin: version %s-*\nPin-Priority: 1000\n' "${driver[580]}" >"$work/stub/etc/apt/preferences.d/nvidia-driver-pinning.pref"
stub "nvidia-driver-pinning-${driver[580]}" "${driver[580]}-1"
stub nvlsm 2025.10.11-1
stub cuda-toolkit-13-0 13.0.1-1
for v in 2.28.3-1+cuda13.0 2.29.1-1+cuda13.1; do stub libnccl2 $v; stub libnccl-dev $v "libnccl2 (= $v)"; done
for v in 1:4.4.1-1 1:4.5.0-1; do
  unit nvidia-dcgm
  stub datacenter-gpu-manager-4-core $v
  stub datacenter-gpu-manager-4-cuda13 $v "datacenter-gpu-manager-4-core (= $v)"
done

archive() {   # name pattern-left-out: an index of the pool, signed
  local dir=$work/www/$1 deb
  mkdir -p "$dir"
  for deb in "$work/pool"/*.deb; do
    # shellcheck disable=SC2053  # a pattern
    [[ $(basename "$deb") == $2 ]] && continue
    ln "$deb" "$dir/" && dpkg-deb -f "$deb" && printf 'Filename: ./%s\nSize: %s\nSHA256: %s\n\n' "$(basename "$deb")" "$(stat -c %s "$deb")" "$(sha256sum "$deb" | cut -d ' ' -f 1)"
  done >"$dir/Packages"
  printf 'Origin: stub\nSuite: ./\nDate: %s\nSHA256:\n %s %s Packages\n' "$(LC_ALL=C date -u -R)" "$(sha256sum "$dir/Packages" | cut -d ' ' -f 1)" "$(stat -c %s "$dir/Packages")" >"$dir/Release"
  gpg --batch --quiet --clearsign -o "$dir/InRelease" "$dir/Release"
}
archive good ''
archive mixed "nvidia-fabricmanager_${driver[580]}-*"      # as when driver and fabric manager come from different days
archive parts "libnvidia-nscq_${driver[580]}-*"            # an optional package, in other versions only
archive forged ''
sed -i 's/^SHA256: ./SHA256: 0/' "$work/www/forged/Packages"
gpg --batch --armor --export >"$work/www/key.asc"
vars+=", nvidia_key_sha256: \"$(sha256sum "$work/www/key.asc" | cut -d ' ' -f 1)\""

small_spec 1 's/recipe: debian-12/recipe: debian-13/' "s/bake: \[.*\] }/bake: [ $baked ] }/; s/playbooks: \[.*\]/playbooks: [ $baked ]/" >"$work/cluster.yaml"
echo "vars: { $vars }" >>"$work/cluster.yaml"
export no_proxy="${no_proxy:+$no_proxy,}10.20.0.1"   # the lab's package proxy knows the mirrors of the host only
stage "a lab"
lab_up   # which puts the lab's key into the spec
ip netns exec muster-quickstart python3 -m http.server -d "$work/www" -b 10.20.0.1 $port >"$work/http.log" 2>&1 &

stage "what must be refused, and installs nothing"
refused() {   # archive words what
  sed "s#/good\"#/$1\"#" "$work/cluster.yaml" >"$work/$1.yaml"
  local rc=0
  $muster up "$work/$1.yaml" --yes >"$work/$1.log" 2>&1 || rc=$?
  check "$3 is refused" test $rc -ne 0
  tail -n 3 "$work/$1.log" | cut -c 1-300
  check "and the reason is said: $2" grep -q "$2" "$work/$1.log"
}
refused forged 'package source nvidia: .*Hash Sum mismatch' "an index that is not the signed one"
refused mixed "${driver[580]}.*'nvidia-fabricmanager' was not found" "a set without its fabric manager"
refused parts "${driver[580]}.*'libnvidia-nscq' was not found" "a set whose NSCQ is of another version"
sed "s/nvidia_driver: \"${driver[580]}\", //" "$work/cluster.yaml" >"$work/missing.yaml"
check "a variable that is missing is named before anything is built" sh -c "! $muster up '$work/missing.yaml' --yes >'$work/missing.log' 2>&1 && grep -q nvidia_driver '$work/missing.log'"
invalid() {   # what sed-expression path-in-the-spec
  sed "$2" "$work/cluster.yaml" >"$work/invalid.yaml"
  expect_exit 2 $muster spec check "$work/invalid.yaml" >"$work/invalid.log" 2>&1
  check "$1 is refused by spec check" grep -q "$3" "$work/invalid.log"
}
invalid "a branch that is not the driver's" 's/nvidia_cuda: /nvidia_branch: "570", &/' 'vars.nvidia_branch'
invalid "a branch in place of a version" "s/nvidia_driver: \"${driver[580]}\"/nvidia_driver: \"580\"/" 'vars.nvidia_driver'
invalid "a second driver" 's/playbooks: \[ base,/& gpu,/' 'gpu-vendor'

# The set, in an image of each branch.
packages() {   # the packages of the image as it was built last: NAME VERSION
  local digest
  digest=$($muster image list --json | jq -r '.images[] | select(.name == "cpu") | .digest')
  jq -r '.packages | to_entries[] | "\(.key) \(.value)"' "$MUSTER_LAB_DIR/state/images/cpu/${digest#sha256:}/build.json"
}
image_of() {   # branch driver's-name fabric's-suffix
  local v=${driver[$1]} p
  stage "an image with $1"
  sed "s/nvidia_driver: \"${driver[580]}\"/nvidia_driver: \"$v\"/" "$work/cluster.yaml" >"$work/$1.yaml"
  # Yes to the preview, so that the image is built; no to the plan.
  python3 -c 'import os, pty, subprocess, sys
mine, theirs = pty.openpty()
os.write(mine, b"y\nn\n")
sys.exit(subprocess.call(sys.argv[1:], stdin=theirs))' "$muster" up "$work/$1.yaml" >"$work/$1.log" 2>&1 || true
  grep -q '^image cpu: sha256:' "$work/$1.log" || { tail -n 20 "$work/$1.log" | cut -c 1-600; die "an image with $1"; }
  packages >"$work/$1.packages"
  for p in "$2" nvidia-kernel-open-dkms libcuda1 nvidia-persistenced "nvidia-fabricmanager$3" "libnvidia-nscq$3" "libnvsdm$3" "nvidia-imex$3"; do
    check "$1: $p is $v" grep -qx "$p $v-1" "$work/$1.packages"
  done
  grep -v " $v-1\$" "$work/$1.packages" >"$work/$1.others"
  check "$1: nothing of the driver is of another version" nowhere_in -E '^(nvidia-|libnvidia-|libnvsdm|libcuda1 )' "$work/$1.others"
  check "$1: NVLSM is there, with its own version" grep -qx 'nvlsm 2025.10.11-1' "$work/$1.packages"
}
image_of 570 nvidia-open-570 -570
image_of 595 nvidia-open ""

stage "580 on a node"
$muster up "$work/cluster.yaml" --yes --report "$work/report" | tee "$work/up.log"
check "node01 is accepted" test "$(node_state node01)" = accepted
on() { node_ssh node01 "$@" | tr -d '\r'; }
check "every step of gpu-vendor that needs a GPU says so" \
  jq -e '[.nodes[0].steps[] | select(.name | startswith("gpu-vendor/"))] | length == 7 and all(.status == "not_applicable" and .message == "no GPU")' "$work/report/report.json"
version() { on dpkg-query -W -f "'\${Version}'" "$1"; }
for p in nvidia-open-580 nvidia-kernel-open-dkms libcuda1 nvidia-persistenced nvidia-fabricmanager libnvidia-nscq libnvsdm nvidia-imex \
  "nvidia-driver-pinning-${driver[580]}"; do
  check "$p is ${driver[580]} although the archive has ${newer[580]} and ${newer[595]}" test "$(version "$p")" = "${driver[580]}-1"
done
check "NCCL is the one asked for" test "$(version libnccl2)" = 2.28.3-1+cuda13.0
check "the module was built for the kernel that runs" test "$(on /sbin/modinfo -F version nvidia)" = "${driver[580]}"
check "no hold contradicts the pinning package" test "$(on apt-mark showhold | grep -cE '^(nvidia|libn|libcuda|datacenter)')" = 0
on sudo apt-get -q update -o Dir::Etc::sourcelist=/etc/apt/sources.list.d/muster-nvidia.sources -o Dir::Etc::sourceparts=/dev/null -o APT::Get::List-Cleanup=false
check "the node's apt has the newer versions in its lists" on sh -c "'apt-cache madison nvidia-fabricmanager | grep -q ${newer[595]}'"
check "an upgrade would leave the set alone" node_ssh node01 "sudo apt-get -s dist-upgrade >/tmp/upgrade && ! grep -E '^Inst (nvidia|libn|libcuda|datacenter)' /tmp/upgrade"
check "no unit failed" fails_on node01 "systemctl --failed --no-legend --plain | grep -q ."
