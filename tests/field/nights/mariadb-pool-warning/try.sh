#!/bin/bash
. "$SRC/tests/field/nights/stack.sh"
munge_up || exit 1
expect "the leader runs" up yes
# The first time slurmdbd cannot reach the slurmctld that registers with it yet.
expect "slurmdbd logs no error about the database" eval '! grep "error: .*atabase" "$logs/slurmdbd.out"'
dbd stop && dbd start
expect "nor any error later" eval '! grep error: "$logs/slurmdbd.out"'
expect "nor does MariaDB" eval '! grep "\[ERROR\]" "$logs/mariadb.log"'
expect "a small database takes little" [ "$(awk '/VmRSS/ { print $2 }' "/proc/$mariadbd_pid/status")" -lt 262144 ]
down
exit $wrong
