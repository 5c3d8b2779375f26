#!/usr/bin/env bash
# playbook gpu-vendor with a private archive of stub packages: its key, exact versions, holds, a mixed set refused, a module that DKMS builds
# No vendor archive is reachable here. Versions, holds and refusals are apt's own doing, the module is DKMS'; the stubs do nothing else.
# stands on: agent/steps/packages controller/engines/local_engine* controller/image/layers* controller/image/service/bake* controller/power/redfish*
# stands on: images/debian-13.yaml playbooks/base.yaml playbooks/firewall.yaml playbooks/gpu-vendor.yaml playbooks/ssh.yaml
# stands on: playbooks/storage-local.yaml
source "$(dirname "$0")/lib.sh"
command -v gpg >/dev/null || die "apt-get install gnupg"
driver=595.10.01 newer=595.20.02 port=8099
vars="nvidia_repository: \"http://10.20.0.1:$port/good\", nvidia_key_url: \"http://10.20.0.1:$port/key.asc\", nvidia_driver: \"$driver\", \
nvidia_cuda: 13-0, nvidia_cuda_major: \"13\", nvidia_nccl: 2.28.3-1+cuda13.0, nvidia_dcgm: \"1:4.4.1-1\""
baked="base, ssh, firewall, storage-local, gpu-vendor"

# ---- the archive
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
for v in $driver $newer; do
  src=$work/stub/usr/src/nvidia-$v
  mkdir -p "$src"
  printf 'PACKAGE_NAME="nvidia"\nPACKAGE_VERSION="%s"\nBUILT_MODULE_NAME[0]="nvidia"\nDEST_MODULE_LOCATION[0]="/updates/dkms"\nAUTOINSTALL="yes"\n' "$v" >"$src/dkms.conf"
  echo 'obj-m := nvidia.o' >"$src/Makefile"
  printf '#include <linux/module.h>\nMODULE_LICENSE("Dual MIT/GPL");\nMODULE_VERSION("%s");\nMODULE_DESCRIPTION("stub");\n' "$v" >"$src/nvidia.c"
  mkdir -p "$work/stub/DEBIAN"
  printf '#!/bin/sh\ndkms add -m nvidia -v %s || true\n' "$v" >"$work/stub/DEBIAN/postinst"
  chmod 755 "$work/stub/DEBIAN/postinst"
  stub nvidia-kernel-open-dkms $v-1 'dkms, make, gcc'
  for daemon in persistenced fabricmanager; do
    mkdir -p "$work/stub/usr/lib/systemd/system"
    printf '[Service]\nExecStart=/bin/false\n[Install]\nWantedBy=multi-user.target\n' >"$work/stub/usr/lib/systemd/system/nvidia-$daemon.service"
    stub nvidia-$daemon $v-1
  done
  stub libcuda1 $v-1
  stub nvidia-open $v-1 "nvidia-kernel-open-dkms (>= $driver), libcuda1 (>= $driver), nvidia-persistenced (>= $driver)"
done
stub cuda-toolkit-13-0 13.0.1-1
for v in 2.28.3-1+cuda13.0 2.29.1-1+cuda13.1; do stub libnccl2 $v; stub libnccl-dev $v "libnccl2 (= $v)"; done
for v in 1:4.4.1-1 1:4.5.0-1; do
  mkdir -p "$work/stub/usr/lib/systemd/system"
  printf '[Service]\nExecStart=/bin/false\n[Install]\nWantedBy=multi-user.target\n' >"$work/stub/usr/lib/systemd/system/nvidia-dcgm.service"
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
archive mixed "nvidia-fabricmanager_$driver-*"      # as when driver and fabric manager come from different days
archive forged ''
sed -i 's/^SHA256: ./SHA256: 0/' "$work/www/forged/Packages"
gpg --batch --armor --export >"$work/www/key.asc"
vars+=", nvidia_key_sha256: \"$(sha256sum "$work/www/key.asc" | cut -d ' ' -f 1)\""

small_spec 1 's/recipe: debian-12/recipe: debian-13/' "s/bake: \[.*\] }/bake: [ $baked ] }/; s/playbooks: \[.*\]/playbooks: [ $baked ]/" >"$work/cluster.yaml"
echo "vars: { $vars }" >>"$work/cluster.yaml"
export no_proxy="${no_proxy:+$no_proxy,}10.20.0.1"   # the lab's package proxy knows the mirrors of the host only
lab_up   # which puts the lab's key into the spec
ip netns exec muster-quickstart python3 -m http.server -d "$work/www" -b 10.20.0.1 $port >"$work/http.log" 2>&1 &

# ---- what must be refused, and installs nothing
refused() {   # archive words what
  sed "s#/good\"#/$1\"#" "$work/cluster.yaml" >"$work/$1.yaml"
  local rc=0
  $muster up "$work/$1.yaml" --yes >"$work/$1.log" 2>&1 || rc=$?
  check "$3 is refused" test $rc -ne 0
  tail -n 3 "$work/$1.log" | cut -c 1-300
  check "and the reason is said: $2" grep -q "$2" "$work/$1.log"
}
refused forged 'package source nvidia: .*Hash Sum mismatch' "an index that is not the signed one"
refused mixed "nvidia-fabricmanager.*$driver" "a set without its fabric manager"
sed "s/nvidia_driver: \"$driver\", //" "$work/cluster.yaml" >"$work/missing.yaml"
check "a variable that is missing is named before anything is built" sh -c "! $muster up '$work/missing.yaml' --yes >'$work/missing.log' 2>&1 && grep -q nvidia_driver '$work/missing.log'"

# ---- the set, on a node
$muster up "$work/cluster.yaml" --yes --report "$work/report" | tee "$work/up.log"
check "node01 is accepted" test "$(node_state node01)" = accepted
on() { node_ssh node01 "$@" | tr -d '\r'; }
check "every step of gpu-vendor that needs a GPU says so" \
  jq -e '[.nodes[0].steps[] | select(.name | startswith("gpu-vendor/"))] | length == 7 and all(.status == "not_applicable" and .message == "no GPU")' "$work/report/report.json"
version() { on dpkg-query -W -f "'\${Version}'" "$1"; }
for p in nvidia-open nvidia-kernel-open-dkms libcuda1 nvidia-persistenced nvidia-fabricmanager; do
  check "$p is $driver although the archive has $newer" test "$(version $p)" = $driver-1
done
check "NCCL is the one asked for" test "$(version libnccl2)" = 2.28.3-1+cuda13.0
check "the module was built for the kernel that runs" test "$(on /sbin/modinfo -F version nvidia)" = $driver
check "the named packages are held" test "$(on apt-mark showhold | grep -cE '^(nvidia-open|nvidia-fabricmanager|libnccl2|libnccl-dev|datacenter-gpu-manager-4-core)$')" = 5
check "an upgrade would leave the set alone" node_ssh node01 "sudo apt-get -s dist-upgrade >/tmp/upgrade && ! grep -E '^Inst (nvidia|libn|libcuda|datacenter)' /tmp/upgrade"
check "no unit failed" fails_on node01 "systemctl --failed --no-legend --plain | grep -q ."
