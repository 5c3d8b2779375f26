#!/bin/sh
# SIMULATED GPU: breaks a stand-in, until it is healed or the machine restarts.
#   fault xid GPU NUMBER    the kernel's log has that Xid every other second, as of a GPU that programs keep using;
#                           with 79 (fell off the bus) the GPU is lost to nvidia-smi and NVML, too
#   fault ecc GPU COUNT     this many uncorrected errors; ecc-corrected likewise
#   fault remap GPU         a row is to be remapped
#   fault heal GPU
set -e
here=/run/muster-standin faults=/run/muster-standin/faults
what=$1 gpu=$2 number=${3:-}
[ -d "/proc/driver/nvidia/gpus/$(printf '0000:%02x:00.0' $((0xe0 + gpu)))" ] || { echo "there is no stand-in $gpu" >&2; exit 1; }
mkdir -p $here
touch $faults
case $what in
  xid)
    address=$(printf 'PCI:0000:%02x:00' $((0xe0 + gpu)))
    words="pid='<unknown>', name=<unknown>, SIMULATED GPU"
    [ "$number" != 79 ] || { echo "lost $gpu" >>$faults; words="$words has fallen off the bus."; }
    systemctl stop "muster-standin-xid$gpu.service" 2>/dev/null || true
    # shellcheck disable=SC2016  # for the shell that it starts
    systemd-run --quiet --collect --unit="muster-standin-xid$gpu" /bin/sh -c \
      'while :; do echo "<2>NVRM: Xid ($1): $2, $3" >/dev/kmsg; sleep 2; done' sh "$address" "$number" "$words"
    ;;
  ecc | ecc-corrected) echo "$what $gpu $number" >>$faults ;;
  remap) echo "remap $gpu" >>$faults ;;
  heal)
    systemctl stop "muster-standin-xid$gpu.service" 2>/dev/null || true
    sed -i -E "/^[a-z-]+ $gpu( |\$)/d" $faults
    ;;
  *) echo "unknown fault '$what'" >&2; exit 2 ;;
esac
