#!/bin/bash
# Real Slurm: slurmctld restarts while a node is being drained. Until the node has registered, sinfo shows it as drained, with
# its job running: here slurmd is stopped in between, so that it does not register.
set -u
. "$SRC/tests/field/root.sh"
SLURM_ROOT=$root
. "$SRC/tests/field/slurm.sh"
slurm_conf 1
slurm_up || { tail -n 20 "$logs"/*; exit 1; }
pause='"reason":"muster reimage","deadline_seconds":2'
job=$(slurm sbatch --parsable -o /dev/null --chdir=/ --wrap 'sleep 600')
within 20 is RUNNING state_of_job "$job"
expect "the drain waits for the job" refused slurm_step apply n1 drain "$pause"
slurmd stop n1
ctld stop
ctld start
expect "sinfo shows no job" is 'drained*|muster reimage' state n1
expect "squeue does" is RUNNING state_of_job "$job"
expect "the look does not hold" refused slurm_step check n1 drain "$pause"
expect "nor does the drain" refused slurm_step apply n1 drain "$pause"
expect "they name the job" grep -q "jobs $job\b" "$WORK/agent.log"
slurmd start n1
within 20 is 'draining|*' state n1
slurm scancel "$job"
expect "the drain ends when the job has ended" slurm_step apply n1 drain "$pause,\"deadline_seconds\":60"
exit $wrong
