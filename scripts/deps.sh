#!/usr/bin/env bash
# Installs the Debian packages muster needs: scripts/deps.sh build|lab|test|archive|gpu|clang|field|corpus ... Installs nothing that is there already.
# Uses sudo when it is not run by root. Prints what it installs; fails with apt's own words.
set -euo pipefail

build="g++ cmake ninja-build ccache pkg-config git ca-certificates libssh-dev libyaml-cpp-dev libsqlite3-dev libssl-dev
  catch2 nlohmann-json3-dev libfmt-dev libcli11-dev libzstd-dev libkainjow-mustache-dev zlib1g-dev dpkg-dev file zstd libopenmpi-dev openmpi-bin"
lab="qemu-system-x86 qemu-utils ovmf ipxe-qemu ipxe dnsmasq-base mmdebstrap debian-archive-keyring systemd-boot-efi
  mtools dosfstools fdisk gdisk e2fsprogs xfsprogs zstd xz-utils cpio kmod fio nginx-light iproute2 openssh-client mdadm busybox-static openipmi ipmitool procps"
archive="zstd python3 openssl binutils"  # scripts/release.sh, with build
gpu="nvidia-cuda-toolkit nvidia-cuda-toolkit-gcc libnccl-dev"  # Debian 13, non-free
test="ipmitool openipmi freeipmi-tools python3-pyghmi openssh-server python3-sushy redfishtool jq curl socat sqlite3 clang-format codespell shellcheck
  prometheus"  # promtool
clang="clang-16 libclang-rt-16-dev"  # the presets clang and fuzz
# Only for tests/field/run.sh: the programs that decide there.
field="systemd procps openssh-server sudo jq curl iproute2 dnsmasq-base ipxe prometheus iptables ufw chrony ipmitool openipmi fish tcsh zsh slurmctld slurmd slurm-client munge
  slurmdbd mariadb-server logrotate mmdebstrap python3-yaml"
# Only for tests/corpus, asked for by name: what makes file systems and volumes, a kernel in a process to use them with, and what
# rescues them. Debian 12 has no hfsprogs, bcachefs-tools, zfsutils (contrib), stratisd, vdo or ufsutils.
corpus="user-mode-linux e2fsprogs xfsprogs btrfs-progs f2fs-tools jfsutils reiserfsprogs reiser4progs nilfs-tools dosfstools mtools exfatprogs exfat-fuse
  ntfs-3g udftools hfsutils hfsplus ocfs2-tools gfs2-utils apfsprogs makefs bfs genromfs mtd-utils squashfs-tools erofs-utils xorriso lvm2 mdadm
  cryptsetup-bin dmsetup bcache-tools drbd-utils dmraid zfs-fuse thin-provisioning-tools testdisk gpart gdisk parted fdisk sleuthkit dpkg-dev"

sudo=""
[[ $EUID -eq 0 ]] || sudo=sudo
# A fresh system knows no packages yet, and would seem to have only the oldest Boost.
compgen -G "/var/lib/apt/lists/*_Packages*" >/dev/null || $sudo apt-get -qq update
# Known is not installable: Debian 13 still names it. (Read to the end: a closed pipe would count as a failure.)
if apt-cache policy libboost1.81-dev 2>/dev/null | grep 'Candidate: [0-9]' >/dev/null; then build="$build libboost1.81-dev"; else build="$build libboost-dev"; fi

missing=()
for set in "${@:-build}"; do
  [[ $set =~ ^(build|lab|test|archive|gpu|clang|field|corpus)$ ]] || { echo "deps.sh: unknown set '$set' (build, lab, test, archive, gpu, clang, field, corpus)" >&2; exit 2; }
  for package in ${!set}; do
    [[ $(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null) == installed ]] || missing+=("$package")
  done
done
# Services must not start because a library or a tool was installed. A run that was killed leaves its policy behind.
policy=/usr/sbin/policy-rc.d
mark="# made by deps.sh of muster"
if grep -qsx "$mark" $policy; then $sudo rm -f $policy; fi
[[ ${#missing[@]} -gt 0 ]] || exit 0

echo "installing ${#missing[@]} packages: ${missing[*]}"
export DEBIAN_FRONTEND=noninteractive
$sudo apt-get -qq update
made_policy=0
log=$(mktemp)
trap '[[ $made_policy -eq 0 ]] || $sudo rm -f $policy; rm -f "$log"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
if [[ ! -e $policy ]]; then
  made_policy=1
  printf '#!/bin/sh\n%s\nexit 101\n' "$mark" | $sudo tee $policy >/dev/null
  $sudo chmod 755 $policy
fi
# What an interrupted installation left half done; apt would refuse to go on.
[[ -z $(dpkg --audit) ]] || $sudo env DEBIAN_FRONTEND=noninteractive dpkg --configure -a
status=0
$sudo env DEBIAN_FRONTEND=noninteractive apt-get -qq install -y --no-install-recommends "${missing[@]}" >"$log" 2>&1 || status=$?
[[ $status -eq 0 ]] || tail -n 30 "$log" >&2
exit $status
