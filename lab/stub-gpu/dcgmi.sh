#!/bin/sh
# SIMULATED GPU: the lab's stand-in for dcgmi: `dcgmi discovery -l`, of what the stand-in for the driver lists.
if [ "$*" != "discovery -l" ]; then
  echo "SIMULATED GPU: the stand-in does not support dcgmi $*" >&2
  exit 1
fi
if ! systemctl is-active -q nvidia-dcgm; then
  echo "Error: unable to establish a connection to the specified host: localhost" >&2
  exit 1
fi
count=$(nvidia-smi -L | grep -c '^GPU ')
if [ "$count" = 1 ]; then echo "1 GPU found. (SIMULATED GPU)"; else echo "$count GPUs found. (SIMULATED GPU)"; fi
nvidia-smi -L | sed -n 's/^GPU \([0-9]*\): \(.*\) (UUID: .*/| \1      | Name: \2 |/p'
