#!/bin/bash
. "$SRC/tests/field/nights/stack.sh"
slurm groupadd -f adm
munge_up || exit 1
step scheduler "signals after a rotation"
expect "the leader runs" up yes
# No cgroups in a namespace; slurmd's log is where the playbook has it.
sed -i 's#proctrack/cgroup#proctrack/linuxproc#; s#^TaskPlugin=.*#TaskPlugin=task/none#; s#,Contain##' "$etc/slurm.conf"
[ "$RELEASE" = 12 ] || echo CgroupPlugin=disabled > "$etc/cgroup.conf"
mkdir -p "$SLURM_ROOT/var/lib/slurm/slurmd"
daemon slurmd root "$logs/slurmd.out" slurmd -D
within 30 test -s "$logs/slurmd.log"
# A day's worth; munge's rule is for its own user.
chown munge: "$SLURM_ROOT"/var/log/munge "$SLURM_ROOT"/var/log/munge/*
for log in "$logs/slurmctld.log" "$logs/slurmd.log" "$logs/slurmdbd.log" "$SLURM_ROOT/var/log/munge/munged.log"; do
  head -c 6000000 /dev/zero | tr '\0' 'x' >> "$log"
done
slurm logrotate /etc/logrotate.conf > "$WORK/logrotate.log" 2>&1
sleep 2
controller stop
ended slurmd
dbd stop
kill "$(cat "$run/munge/munged.pid")"
within 20 grep -q "[Ee]xiting on signal" "$SLURM_ROOT/var/log/munge/munged.log"
for log in "$logs/slurmctld.log" "$logs/slurmd.log" "$logs/slurmdbd.log" "$SLURM_ROOT/var/log/munge/munged.log"; do
  expect "$log was rotated" eval 'ls "$log".1* > /dev/null 2>&1'
  expect "and its daemon writes to the new one" test -s "$log"
  expect "which is small" [ "$(stat -c %s "$log" 2> /dev/null || echo 0)" -lt 100000 ]
done
database stop
[ $wrong -eq 0 ] || { cat "$WORK/logrotate.log"; ls -la "$logs"; cat "$SLURM_ROOT/etc/logrotate.d/slurmctld"; }
exit $wrong
