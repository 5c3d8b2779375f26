#!/bin/bash
# Real Slurm: slurmctld drains a node that registered with one of two GPUs, and leaves it drained when it has both again.
set -u
. "$SRC/tests/field/root.sh"
SLURM_ROOT=$root
. "$SRC/tests/field/slurm.sh"
slurm_conf 1 Gres=gpu:2
echo GresTypes=gpu >> "$etc/slurm.conf"
mknod "$run/gpu0" c 195 0 && mknod "$run/gpu1" c 195 1 || exit 1
echo "Name=gpu File=/run/gpu[0-1]" > "$etc/gres.conf"
slurm_up || { tail -n 20 "$logs"/*; exit 1; }
given_back() { slurm_step apply n1 resume '"only_reason":"muster","deadline_seconds":5'; }
slurmd stop n1
echo "Name=gpu File=/run/gpu0" > "$etc/gres.conf"
slurmd start n1
within 20 is 'inval|gres/gpu *' state n1 || { echo "n1 is $(state n1)"; exit 1; }
expect "it is not given back" refused given_back
expect "the message has what it lacks" grep -q 'gres/gpu count' "$WORK/agent.log"
slurmd stop n1
echo "Name=gpu File=/run/gpu[0-1]" > "$etc/gres.conf"
slurmd start n1
within 20 is 'drained|gres/gpu *' state n1 || { echo "n1 is $(state n1)"; exit 1; }
expect "with both it is given back" given_back
expect "and takes jobs" is 'idle|*' state n1
exit $wrong
