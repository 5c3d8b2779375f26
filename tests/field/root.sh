#!/bin/bash
# For cases with real programs that change a host: this system in a root that is thrown away. Sourced by their try.sh, which
# tests/field/run.sh runs in namespaces of their own. Afterwards `in_root COMMAND...` runs something in it, `agent VERB
# MODULE PARAMETERS` a step through muster-agent, whose log goes to $WORK/agent.log; `expect WHAT COMMAND...` and `exit $wrong`.
needs() {
  for program in "$@"; do
    command -v "$program" > /dev/null || { echo "needs $program"; exit 77; }
  done
}
[ -x "$BUILD/muster-agent" ] || { echo "needs $BUILD/muster-agent"; exit 77; }
over=$WORK/over root=$WORK/root
mkdir -p "$over" "$root" && mount -t tmpfs tmpfs "$over" && mkdir "$over/upper" "$over/work" || exit 1
mount -t overlay overlay -o "lowerdir=/,upperdir=$over/upper,workdir=$over/work" "$root" || { echo "needs overlayfs"; exit 77; }
mount --bind /proc "$root/proc" && mount --bind /dev "$root/dev" && mount -t tmpfs tmpfs "$root/run" || exit 1
mount -t devpts devpts "$root/dev/pts" 2> /dev/null
cp "$BUILD/muster-agent" "$root/usr/sbin/muster-agent"
ip link set lo up
in_root() { chroot "$root" env DEBIAN_FRONTEND=noninteractive PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin "$@"; }
agent() { # apply|check MODULE PARAMETERS
  echo "{\"steps\":[{\"id\":\"field/it\",\"module\":\"$2\",\"params\":$3}]}" | in_root muster-agent "$1" | tee -a "$WORK/agent.log"
  return "${PIPESTATUS[1]}"
}
wrong=0
expect() { # WHAT COMMAND...
  local what=$1
  shift
  "$@" || { echo "not so: $what"; wrong=1; }
}
