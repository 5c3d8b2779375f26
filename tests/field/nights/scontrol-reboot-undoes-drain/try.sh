#!/bin/bash
# Real Slurm with a RebootProgram: `scontrol reboot nextstate=resume` of a node that muster has drained.
set -u
. "$SRC/tests/field/root.sh"
SLURM_ROOT=$root
. "$SRC/tests/field/slurm.sh"
slurm_conf 1
echo RebootProgram=/bin/true >> "$etc/slurm.conf"
slurm_up || { tail -n 20 "$logs"/*; exit 1; }
pause='"reason":"muster reimage","deadline_seconds":10'
reboots() { # REASON: and is back
  slurm scontrol reboot ASAP nextstate=resume ${1:+reason="$1"} n1
  within 30 is 'reboot*' state n1
  expect "no look before a reboot holds while Slurm restarts it" refused slurm_step check n1 drain "$pause"
  within 30 is 'reboot^*' state n1
  slurmd stop n1
  slurmd start n1 -b
  within 30 is 'idle|*' state n1 || { echo "n1 is $(state n1)"; exit 1; }
}
for reason in weekly ""; do
  expect "it is drained" slurm_step apply n1 drain "$pause"
  reboots "$reason"
  expect "on trial it is drained again" slurm_step apply n1 registered "$pause"
  expect "with muster's reason" is 'drained|muster reimage' state n1
  expect "and given back" slurm_step apply n1 resume '"only_reason":"muster reimage","deadline_seconds":10'
done

expect "it is drained" slurm_step apply n1 drain "$pause"
reboots weekly
job=$(slurm sbatch --parsable -o /dev/null --chdir=/ --wrap 'sleep 600')
within 20 is RUNNING state_of_job "$job"
expect "it is not in order while a job runs" refused slurm_step apply n1 registered "$pause,\"deadline_seconds\":2"
expect "but gets no more" is 'draining|muster reimage' state n1
expect "the job runs" is RUNNING state_of_job "$job"
slurm scancel "$job"
expect "it is when the job has ended" slurm_step apply n1 registered '"reason":"muster reimage","deadline_seconds":60'

# A reboot that keeps the drain adds to its reason.
slurm scontrol reboot n1
within 30 is 'reboot^*' state n1
slurmd stop n1
slurmd start n1 -b
within 30 is 'drained|*' state n1
expect "it is muster's drain, still" slurm_step apply n1 resume '"only_reason":"muster reimage","deadline_seconds":10'
expect "and given back" is 'idle|*' state n1
exit $wrong
