#!/bin/sh
# SIMULATED GPU: the lab's stand-in for nvidia-smi. It prints what its kernel module lists and the faults set by the script `fault`,
# in the forms of the real one that muster and its tests use: -L, -q, --query-gpu with --format, nothing.
list=/proc/driver/nvidia/gpus faults=/run/muster-standin/faults
if [ ! -d $list ]; then
  echo "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. (SIMULATED GPU)" >&2
  exit 9
fi
driver=$(cat /sys/module/nvidia/version)
said() { sed -n "s/^$2[[:blank:]]*//p" "$list/$1/information"; }
count() { # WORD GPU: the number after it, 1 without one, 0 when it is not there
  sed -n "s/^$1 $2\$/1/p; s/^$1 $2 //p" $faults 2>/dev/null | tail -n 1 | grep . || echo 0
}
lost() { [ "$(count lost "$1")" != 0 ]; }
field() { # NAME INDEX ADDRESS
  case $1 in
    index) echo "$2" ;;
    name | gpu_name) said "$3" Model: ;;
    uuid | gpu_uuid) said "$3" 'GPU UUID:' ;;
    pci.bus_id) echo "0000$3" ;;
    driver_version) echo "$driver" ;;
    persistence_mode) if [ -e /run/muster-standin/persistence ]; then echo Enabled; else echo Disabled; fi ;;
    ecc.errors.uncorrected.*.total) count ecc "$2" ;;
    ecc.errors.corrected.*.total) count ecc-corrected "$2" ;;
    remapped_rows.pending) if [ "$(count remap "$2")" = 0 ]; then echo No; else echo Yes; fi ;;
    *) echo "Field \"$1\" is not a valid field to query. (SIMULATED GPU)" && return 2 ;;
  esac
}

mode=table fields='' header=yes
for word; do
  case $word in
    -L | --list-gpus) mode=list ;;
    -q | --query) mode=query ;;
    --query-gpu=*) mode=fields fields=$(echo "${word#*=}" | tr , ' ') ;;
    --format=*) case $word in *noheader*) header='' ;; esac ;;
    *) echo "SIMULATED GPU: the stand-in does not support $word" >&2 && exit 6 ;;
  esac
done
case $mode in
  table) echo "NVIDIA-SMI $driver   SIMULATED GPU: the lab's stand-in, no hardware" ;;
  query) printf '\n==============NVSMI LOG (SIMULATED GPU)==============\n\nDriver Version : %s\nAttached GPUs  : %s\n' "$driver" "$(find $list -mindepth 1 -maxdepth 1 | wc -l)" ;;
  fields) [ -z "$header" ] || echo "$fields" | sed 's/ /, /g' ;;
esac
status=0 index=0
for path in "$list"/*; do
  address=${path##*/}
  if lost $index; then
    echo "Unable to determine the device handle for GPU$index: $address: GPU is lost.  Reboot the system to recover this GPU (SIMULATED GPU)"
    status=15
  else
    case $mode in
      list | table) echo "GPU $index: $(said "$address" Model:) (UUID: $(said "$address" 'GPU UUID:'))" ;;
      query)
        printf '\nGPU 0000%s\n    Product Name    : %s\n    GPU UUID        : %s\n    Persistence Mode : %s\n' "$address" \
          "$(said "$address" Model:)" "$(said "$address" 'GPU UUID:')" "$(field persistence_mode $index "$address")"
        printf '    Fabric\n        State       : N/A\n        Status      : N/A\n'
        ;;
      fields)
        line=
        for name in $fields; do
          value=$(field "$name" $index "$address") || { echo "$value"; exit 2; }
          line="${line:+$line, }$value"
        done
        echo "$line"
        ;;
    esac
  fi
  index=$((index + 1))
done
exit $status
