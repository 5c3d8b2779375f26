#!/bin/sh
# SIMULATED GPU: stand-in for nvidia-container-cli, as enroot's hook 98-nvidia.sh calls it: `configure [OPTION...] ROOTFS` puts the devices
# and the driver's libraries into the tree of a container, in the mount namespace of the caller; `info` prints the version.
case " $* " in *" info "*) echo "NVRM version: $(cat /sys/module/nvidia/version) (SIMULATED GPU)"; exit ;; esac
case " $* " in *" configure "*) ;; *) echo "SIMULATED GPU: the stand-in does not support nvidia-container-cli $*" >&2; exit 1 ;; esac
for root; do :; done   # the last word
[ -d /proc/driver/nvidia/gpus ] || { echo "nvidia-container-cli: initialization error: nvml error: driver not loaded (SIMULATED GPU)" >&2; exit 1; }
for file in /dev/nvidiactl /dev/nvidia[0-9]* /usr/lib/x86_64-linux-gnu/libcuda.so.1 /usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1 /usr/bin/nvidia-smi; do
  [ -c "$root$file" ] && continue                              # the whole /dev of the node is there
  [ -f "$file" ] && cmp -s "$file" "$root$file" && continue    # or its /usr
  mkdir -p "$root${file%/*}" && { [ -e "$root$file" ] || : >"$root$file"; } && mount --bind "$file" "$root$file" || exit
done
