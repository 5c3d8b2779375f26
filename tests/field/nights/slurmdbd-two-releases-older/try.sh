#!/bin/bash
# One leader's /state under the images debian-12, debian-13, again debian-12 (the other slot), and debian-13 after its operator gave the data up.
RELEASES="12 13 12 13"
. "$SRC/tests/field/nights/stack.sh"
mkdir -p "$WORK/state"
mount --bind "$WORK/state" "$SLURM_ROOT/state" || exit 1
turn=$(($(cat "$WORK/turn" 2> /dev/null || echo 0) + 1))
echo $turn > "$WORK/turn"
munge_up || exit 1
case $turn in
  1)
    expect "the leader runs" up yes
    slurm sbatch -o /dev/null --wrap "sleep 1" > /dev/null
    expect "a job waits" is "*wrap*" slurm squeue -h
    expect "the database has it" within 30 is "1|wrap*" slurm sacct -anXP -o jobid,jobname
    down
    stat -c %u:%g "$WORK/state/mysql/ibdata1" "$WORK/state/slurmctld/job_state" > "$WORK/owners"
    ;;
  2)
    expect "the database is refused" eval '! step accounting "folder of the database"'
    expect "so is the queue" eval '! step scheduler "folder of the controller"'
    expect "nothing has another owner" is "$(cat "$WORK/owners")" stat -c %u:%g "$WORK/state/mysql/ibdata1" "$WORK/state/slurmctld/job_state"
    ;;
  3)
    expect "the old image goes on" up yes
    expect "with its queue" is "*wrap*" slurm squeue -h
    expect "and its accounting" is "1|wrap*" slurm sacct -anXP -o jobid,jobname
    down
    touch "$WORK/state/mysql/muster-start-empty" "$WORK/state/slurmctld/muster-start-empty"
    ;;
  4)
    expect "the new image starts empty" up yes
    expect "without the queue" is "" slurm squeue -h
    expect "the old data is there" test -e "$WORK/state/mysql.before-muster/ibdata1" -a -e "$WORK/state/slurmctld.before-muster/job_state"
    down
    ;;
esac
[ $wrong -eq 0 ] || tail -n 8 "$WORK/agent.log" "$logs"/*.out
exit $wrong
