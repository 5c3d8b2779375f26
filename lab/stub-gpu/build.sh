#!/usr/bin/env bash
# SIMULATED GPU: makes the packages that stand in for NVIDIA's in the lab, and a signed archive of them for the playbook
# gpu-vendor: build.sh FOLDER. In FOLDER then lie archive/ (to be served), key.asc, and vars.yaml with the variables of
# the spec, where ARCHIVE stands for the URL under which FOLDER is served.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
out=$1
driver=595.10.01 toolkit=13.0.1 nccl=2.28.3-1+cuda13.0 dcgm=1:4.4.1-1
libraries=/usr/lib/x86_64-linux-gnu
for tool in gcc dpkg-deb gpg; do command -v $tool >/dev/null || { echo "stub-gpu: $tool is missing" >&2; exit 1; }; done
mkdir -p "$out/archive"
out=$(cd "$out" && pwd)   # gpg and dpkg are called from other folders
work=$(mktemp -d "$out/stub-gpu.XXXXXX")
trap 'rm -rf "$work"' EXIT
tree=$work/tree

pool=$out/archive
stands_for="SIMULATED GPU, stand-in of the lab"
source "$here/packages.sh"
library() {   # library SOURCE NAME
  mkdir -p "$tree$libraries"
  gcc -std=c11 -O2 -Wall -Wextra -Werror -fPIC -shared -fvisibility=hidden -D_DEFAULT_SOURCE -DSTANDIN_VERSION="\"$driver\"" \
    -Wl,-soname,"$2" -o "$tree$libraries/$2.$driver" "$here/$1"
  ln -s "$2.$driver" "$tree$libraries/$2"
  mkdir -p "$tree/DEBIAN"
  echo 'activate-noawait ldconfig' >"$tree/DEBIAN/triggers"
}

source=/usr/src/nvidia-$driver
put 644 nvidia.c "$source/nvidia.c"
printf 'obj-m := nvidia.o\nccflags-y := -DSTANDIN_VERSION=\\"%s\\"\n' "$driver" >"$tree$source/Makefile"
printf 'PACKAGE_NAME="nvidia"\nPACKAGE_VERSION="%s"\nBUILT_MODULE_NAME[0]="nvidia"\nDEST_MODULE_LOCATION[0]="/updates/dkms"\nAUTOINSTALL="yes"\n' "$driver" >"$tree$source/dkms.conf"
put 755 start.sh /usr/lib/muster-standin/start
put 755 fault.sh /usr/lib/muster-standin/fault
unit muster-standin-gpus '[Unit]\nDescription=SIMULATED GPU: device files of the stand-ins of the lab\nConditionVirtualization=vm\nBefore=nvidia-persistenced.service nvidia-dcgm.service\n\n[Service]\nType=oneshot\nRemainAfterExit=yes\nExecStart=/usr/lib/muster-standin/start\n'
mkdir -p "$tree/usr/lib/systemd/system/multi-user.target.wants" "$tree/DEBIAN"
ln -s ../muster-standin-gpus.service "$tree/usr/lib/systemd/system/multi-user.target.wants/"
printf '#!/bin/sh\ndkms add -m nvidia -v %s || true\n' "$driver" >"$tree/DEBIAN/postinst"
chmod 755 "$tree/DEBIAN/postinst"
package nvidia-kernel-open-dkms $driver-1 'dkms, make, gcc'

library nvml.c libnvidia-ml.so.1
package libnvidia-ml1 $driver-1
library cuda.c libcuda.so.1
package libcuda1 $driver-1
put 755 nvidia-smi.sh /usr/bin/nvidia-smi
package nvidia-smi $driver-1 "libnvidia-ml1 (>= $driver)"
put 755 nvidia-persistenced.sh /usr/bin/nvidia-persistenced
unit nvidia-persistenced '[Unit]\nDescription=SIMULATED GPU: stand-in for the persistence daemon\n\n[Service]\nExecStart=/usr/bin/nvidia-persistenced --no-persistence-mode\n\n[Install]\nWantedBy=multi-user.target\n'
package nvidia-persistenced $driver-1
unit nvidia-fabricmanager '[Unit]\nDescription=SIMULATED GPU: stand-in for the fabric manager\n\n[Service]\nExecStart=/bin/false\n\n[Install]\nWantedBy=multi-user.target\n'
package nvidia-fabricmanager $driver-1
package nvidia-open $driver-1 "nvidia-kernel-open-dkms (>= $driver), libcuda1 (>= $driver), libnvidia-ml1 (>= $driver), nvidia-smi (>= $driver), nvidia-persistenced (>= $driver)"
put 755 nvcc.sh /usr/local/cuda-13.0/bin/nvcc
ln -s cuda-13.0 "$tree/usr/local/cuda"
package cuda-toolkit-13-0 $toolkit-1
package libnccl2 $nccl
package libnccl-dev $nccl "libnccl2 (= $nccl)"
put 755 dcgmi.sh /usr/bin/dcgmi
unit nvidia-dcgm '[Unit]\nDescription=SIMULATED GPU: stand-in for DCGM\n\n[Service]\nExecStart=/bin/sleep infinity\n\n[Install]\nWantedBy=multi-user.target\n'
package datacenter-gpu-manager-4-core $dcgm
package datacenter-gpu-manager-4-cuda13 $dcgm "datacenter-gpu-manager-4-core (= $dcgm)"

archive "$out/key.asc"
cat >"$out/vars.yaml" <<YAML
  nvidia_repository: ARCHIVE/archive
  nvidia_key_url: ARCHIVE/key.asc
  nvidia_key_sha256: "$(sha256sum "$out/key.asc" | cut -d ' ' -f 1)"
  nvidia_driver: $driver
  nvidia_cuda: 13-0
  nvidia_cuda_major: "13"
  nvidia_nccl: $nccl
  nvidia_dcgm: "$dcgm"
YAML
