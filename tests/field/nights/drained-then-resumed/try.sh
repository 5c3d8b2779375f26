#!/bin/bash
# Real Slurm: a node that muster has drained is resumed by others, and a job starts, before its reboot.
set -u
. "$SRC/tests/field/root.sh"
SLURM_ROOT=$root
. "$SRC/tests/field/slurm.sh"
slurm_conf 1
slurm_up || { tail -n 20 "$logs"/*; exit 1; }
pause='"reason":"muster reimage","deadline_seconds":86400'
look() { slurm_step check n1 drain "$pause"; }
expect "it is drained" slurm_step apply n1 drain "$pause"
expect "the look holds" look
slurm scontrol update nodename=n1 state=resume
expect "not when it is resumed" refused look
job=$(slurm sbatch --parsable -o /dev/null --chdir=/ --wrap 'sleep 600')
within 20 is RUNNING state_of_job "$job"
begin=$SECONDS
expect "not with a job" refused look
expect "the look is quick" test $((SECONDS - begin)) -lt 10
expect "and changes nothing" is 'allocated|*' state n1
slurm scontrol update nodename=n1 state=drain reason="muster reimage"
expect "not while the job of a drained node runs" refused look
slurm scontrol suspend "$job"
within 20 is 'drained|*' state n1
expect "nor while it is suspended" refused look
slurm scontrol resume "$job"
slurm scancel "$job"
expect "again when it has ended" within 30 look
# Drained by an operator while the rollout waited for others of its batch.
rollout="$pause,\"only_reason\":\"muster reimage\""
expect "a rollout's look holds as well" slurm_step check n1 drain "$rollout"
slurm scontrol update nodename=n1 state=drain reason="bad fan"
expect "a rollout's look does not hold for an operator's drain" refused slurm_step check n1 drain "$rollout"
begin=$SECONDS
expect "nor does it wait" refused slurm_step apply n1 drain "$rollout"
expect "it ends at once" test $((SECONDS - begin)) -lt 10
expect "and names the reason" grep -qF "bad fan" "$WORK/agent.log"
expect "the operator's own re-image holds" look
expect "the node is not given back" slurm_step apply n1 resume '"only_reason":"muster reimage","deadline_seconds":5'
expect "it is the operator's" is 'drained|bad fan' state n1
exit $wrong
