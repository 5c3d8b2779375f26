#!/bin/bash
. "$SRC/tests/field/nights/health.sh"
nodes 16
for node in $slurm_nodes; do errors "$node" 1; look "$node"; done
expect "one after the other 4 are out" is 4 out
# The reasons of nodes that are back stay in Slurm 24.11, and count no more.
for node in $slurm_nodes; do slurm scontrol update nodename="$node" state=undrain 2> /dev/null; errors "$node" 2; done
expect "all are back" is 0 out
all_look 16
expect "at the same time 4 are out" is 4 out
# Before they look again a slurmctld that was killed has forgotten that some were given back.
for node in $slurm_nodes; do
  [ ! -e "$run/$node-state.claim" ] || slurm scontrol update nodename="$node" state=drain reason="$(cat "$run/$node-state.claim")"
done
expect "more are out" [ "$(out)" -gt 4 ]
all_look 16
expect "4 are out again" is 4 out
first=$(slurm sinfo -h -N -t drain -o %N | head -n 1)
slurm scontrol update nodename="$first" state=undrain 2> /dev/null
all_look 16
expect "each finding counted once: none is out for it again" is 3 out
errors "$first" 3
look "$first"
expect "the next error counts" is 4 out
[ $wrong -eq 0 ] || cat "$run/log"
exit $wrong
