#!/bin/bash
. "$SRC/tests/field/nights/stack.sh"
munge_up || exit 1
expect "a cluster without accounting" up ""
slurm sbatch -o /dev/null --wrap "sleep 1" > /dev/null
expect "a job waits" is "*wrap*" slurm squeue -h
controller stop
expect "the controller starts when accounting is added" up yes
expect "the job still waits" is "*wrap*" slurm squeue -h
expect "the database has the cluster" is "lab" slurm sacctmgr -nP show cluster format=cluster
id=$(cat "$SLURM_ROOT/state/slurmctld/clustername")
down
rm -f "$run/stopped"
expect "it starts again" up yes
expect "with the same id" [ "$(cat "$SLURM_ROOT/state/slurmctld/clustername")" = "$id" ]
expect "and was not stopped for it" [ ! -e "$run/stopped" ]
down
rm -rf "$SLURM_ROOT/state/mysql" "$SLURM_ROOT/var/lib/mysql"
expect "it starts when the database starts empty" up yes
expect "the job still waits then" is "*wrap*" slurm squeue -h
# Another cluster's queue is never adopted.
down
expect "a queue of another cluster is refused" eval '! step scheduler "folder of the controller" cluster=lab2'
expect "and left as it is" is "lab*" cat "$SLURM_ROOT/state/slurmctld/clustername"
[ $wrong -eq 0 ] || tail -n 5 "$WORK/agent.log" "$logs"/*.out "$logs/mariadb.log"
exit $wrong
