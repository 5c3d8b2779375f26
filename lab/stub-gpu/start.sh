#!/bin/sh
# SIMULATED GPU: loads the stand-in for the kernel module and makes its device files. Its unit stands before the
# services that the real module's device files are there for. On a machine without stand-ins it does nothing.
modprobe nvidia 2>/dev/null || exit 0
mkdir -p /run/muster-standin
[ -e /dev/nvidiactl ] || mknod -m 666 /dev/nvidiactl c 195 255
index=0
for address in /proc/driver/nvidia/gpus/*; do
  [ -d "$address" ] || break
  [ -e /dev/nvidia$index ] || mknod -m 666 /dev/nvidia$index c 195 $index
  index=$((index + 1))
done
