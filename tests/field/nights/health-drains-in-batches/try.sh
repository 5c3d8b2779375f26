#!/bin/bash
. "$SRC/tests/field/nights/health.sh"
nodes 16
for node in $slurm_nodes; do errors "$node" 1; done
kill -STOP "$(cat "$run/slurmctld.pid")"
failed=0
for node in $slurm_nodes; do
  look "$node" || failed=$((failed + 1)) &
done
wait
kill -CONT "$(cat "$run/slurmctld.pid")"
sleep 2
expect "no node is out" [ "$(out)" -le 4 ]
all_look 16
expect "later no more than a quarter is" is 4 out
[ $wrong -eq 0 ] || cat "$run/log"
exit $wrong
