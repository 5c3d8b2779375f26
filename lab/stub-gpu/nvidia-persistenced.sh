#!/bin/sh
# SIMULATED GPU: the lab's stand-in for nvidia-persistenced.
if [ ! -d /proc/driver/nvidia/gpus ]; then
  echo "Failed to query NVIDIA devices. (SIMULATED GPU)" >&2
  exit 1
fi
mkdir -p /run/muster-standin
trap 'rm -f /run/muster-standin/persistence; exit 0' TERM INT
case " $* " in *" --persistence-mode "*) : >/run/muster-standin/persistence ;; esac
while :; do
  sleep 3600 &
  wait $!
done
