#!/bin/bash
. "$SRC/tests/field/nights/stack.sh"
munge_up || exit 1
# What the step runs to stop slurmctld: there is no systemd here.
printf '#!/bin/sh\n[ "$*" = "stop slurmctld" ] && : > /run/stopped\n' > "$SLURM_ROOT/usr/bin/systemctl"
chmod +x "$SLURM_ROOT/usr/bin/systemctl"
up() { # accounting or nothing; in the order of `muster up`, as far as the controller
  step scheduler "folder of the controller" && step scheduler configuration "accounting=$1" || return 1
  if [ -n "$1" ]; then
    for name in "small database" configuration "folder of the database" "before the database starts" "system tables"; do
      step accounting "$name" || return 1
    done
    database start && step accounting account && step accounting "copy before another release converts it" && dbd start &&
      step accounting "release of the database" || return 1
    step scheduler "the database's id of the cluster" accounting=yes || return 1
  fi
  controller start
}
down() { controller stop; dbd stop; database stop; }
mkdir "$SLURM_ROOT/state"
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
expect "it starts when the database begins anew" up yes
expect "the job still waits then" is "*wrap*" slurm squeue -h
# Another cluster's queue is never adopted.
down
expect "a queue of another cluster is refused" eval '! step scheduler "folder of the controller" cluster=lab2'
expect "and left as it is" is "lab*" cat "$SLURM_ROOT/state/slurmctld/clustername"
[ $wrong -eq 0 ] || tail -n 5 "$WORK/agent.log" "$logs"/*.out "$logs/mariadb.log"
exit $wrong
