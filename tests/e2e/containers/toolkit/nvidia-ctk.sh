#!/bin/sh
# SIMULATED GPU: stand-in for nvidia-ctk of NVIDIA's Container Toolkit: --version; cdi generate [--output=FILE]; cdi list. It describes the
# stand-ins of the lab in the vendor's form: each GPU by its index and by its UUID, and all of them.
folders="/etc/cdi /var/run/cdi"
uuids() { nvidia-smi -L | sed -n 's/^GPU [0-9]*: .*(UUID: \(.*\))$/\1/p'; }
device() { # device NAME INDEX...
  printf '    - name: "%s"\n      containerEdits:\n        deviceNodes:\n' "$1"
  shift
  for index; do printf '            - path: /dev/nvidia%s\n' "$index"; done
}
generate() {
  nvidia-smi -L >/dev/null || exit
  printf -- '---\ncdiVersion: 0.5.0\nkind: nvidia.com/gpu\ndevices:\n'
  n=0
  for uuid in $(uuids); do
    device $n $n
    device "$uuid" $n
    n=$((n + 1))
  done
  # shellcheck disable=SC2046  # one word each
  device all $(seq 0 $((n - 1)))
  printf 'containerEdits:\n    env:\n        - NVIDIA_VISIBLE_DEVICES=void\n    deviceNodes:\n        - path: /dev/nvidiactl\n    mounts:\n'
  for library in /usr/lib/x86_64-linux-gnu/libcuda.so.1 /usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1 /usr/bin/nvidia-smi; do
    printf '        - hostPath: %s\n          containerPath: %s\n          options: [ro, nosuid, nodev, rbind, rprivate]\n' $library $library
  done
}
listed() { # the names in the files of all folders, as the real one prints them; how many goes to the standard error
  for folder in $folders; do
    for file in "$folder"/*.yaml "$folder"/*.json; do
      [ -e "$file" ] || continue
      case $file in
        *.json) grep -o '"name": *"[^"]*"' "$file" | sed 's/.*"\(.*\)"/\1/' ;;
        *) sed -n 's/^ *- name: "\{0,1\}\([^"]*\)"\{0,1\}$/\1/p' "$file" ;;
      esac
    done
  done | sort -u | sed 's#^#nvidia.com/gpu=#'
}
case "$*" in
  --version) echo "NVIDIA Container Toolkit CLI version STANDIN_VERSION (SIMULATED GPU)" ;;
  "cdi list")
    names=$(listed)
    echo "level=info msg=\"Found $(echo "$names" | grep -c .) CDI devices\"" >&2
    [ -z "$names" ] || echo "$names"
    ;;
  "cdi generate" | "cdi generate --output="*)
    out=$NVIDIA_CTK_CDI_OUTPUT_FILE_PATH
    case $3 in --output=*) out=${3#--output=} ;; esac
    if [ -z "$out" ]; then generate; exit; fi
    said=$(generate) || exit
    mkdir -p "$(dirname "$out")" && echo "$said" >"$out.new" && mv "$out.new" "$out"
    ;;
  *) echo "SIMULATED GPU: the stand-in does not support nvidia-ctk $*" >&2; exit 1 ;;
esac
