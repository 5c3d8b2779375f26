#!/bin/bash
. "$SRC/tests/field/nights/stack.sh"
for playbook in scheduler accounting; do
  expect "$playbook installs logrotate" eval 'python3 "$SRC/tests/field/nights/playbook.py" '$playbook' packages | grep -q \"logrotate\"'
done
for daemon in slurmctld slurmd slurmdbd munge; do
  expect "it has a rule for $daemon" test -e "$SLURM_ROOT/etc/logrotate.d/$daemon"
done
expect "and a timer that is started" eval 'python3 "$SRC/tests/field/nights/playbook.py" scheduler "rotation of logs" | grep -q "logrotate.timer.*\"enabled\": true"'
[ "$RELEASE" = 12 ] || expect "as its package has it" test -e "$SLURM_ROOT/etc/systemd/system/timers.target.wants/logrotate.timer"
# What MariaDB writes goes to the journal.
munge_up && up yes
expect "MariaDB writes no file of its own" eval '! ls "$SLURM_ROOT"/var/log/mysql/* "$SLURM_ROOT"/var/lib/mysql/*.err 2> /dev/null | grep .'
down
exit $wrong
