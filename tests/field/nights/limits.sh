#!/bin/bash
# For cases of jobs' limits: slurmd with the limits that Debian's unit and the playbook's drop-in give it, all figures of open files divided by 64: a
# sandbox may not have the real ones. Sourced by try.sh; afterwards $memory is what locked memory `infinity` is here.
. "$SRC/tests/field/nights/stack.sh"
slurm_conf 1
content scheduler configuration | grep '^PropagateResourceLimits' >> "$etc/slurm.conf"
step scheduler "open files of jobs"
unit() { # LimitNOFILE of slurmd, the last one
  sed -n "s/^$1=//p" "$SLURM_ROOT/lib/systemd/system/slurmd.service" "$SLURM_ROOT"/etc/systemd/system/slurmd.service.d/*.conf 2> /dev/null | tail -n 1
}
files=$(($(unit LimitNOFILE) / 64))
# What base promises to sessions, and jobs therefore have to have.
[ "$(content base limits | sed -n 's/^\* soft nofile //p')" = $((16384 * 64)) ] || { echo "base promises another figure"; exit 1; }
[ "$(unit LimitMEMLOCK)" = infinity ] || { echo "slurmd's locked memory is limited"; exit 1; }
memory=$(ulimit -Hl)
munge_up && ctld start || exit 1
(ulimit -n $files && ulimit -l "$memory" && slurmd start n1) || { cat "$logs"/n1.log; exit 1; }
within 60 is "idle|*" state n1 || { echo "n1 did not register"; exit 1; }
