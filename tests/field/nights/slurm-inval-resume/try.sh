#!/bin/bash
# Real slurmctld and slurmd: a node comes back with one of its two GPUs, another with fewer processors than declared.
set -u
. "$SRC/tests/field/root.sh"
SLURM_ROOT=$root
. "$SRC/tests/field/slurm.sh"
slurm_conf 2 Gres=gpu:2
echo GresTypes=gpu >> "$etc/slurm.conf"
mknod "$run/gpu0" c 195 0 && mknod "$run/gpu1" c 195 1 || exit 1
gpus() { # N1S...: the files of n1's GPUs; n2 has both
  printf 'NodeName=%s Name=gpu File=%s\n' n1 "$1" n2 '/run/gpu[0-1]' > "$etc/gres.conf"
}
gpus '/run/gpu[0-1]'
slurm_up || { tail -n 20 "$logs"/*; exit 1; }
back='"only_reason":"muster reimage","deadline_seconds":2'
pause='"reason":"muster reimage","deadline_seconds":20'
expect "it is drained" slurm_step apply n1 drain "$pause"
slurmd stop n1
gpus /run/gpu0
slurmd start n1
within 20 is 'inval|*' state n1 || { echo "n1 is $(state n1)"; exit 1; }

expect "it is not registered as configured" refused slurm_step apply n1 registered "$pause,\"deadline_seconds\":2"
expect "it is not given back" refused slurm_step apply n1 resume "$back"
expect "it is not given back by muster up either" refused slurm_step apply n1 resume '"only_reason":"muster","deadline_seconds":2'
expect "nothing was changed" is 'inval|*' state n1
slurmd stop n1
gpus '/run/gpu[0-1]'
slurmd start n1
within 20 is 'drained|*' state n1
expect "with both it is registered as configured" slurm_step apply n1 registered "$pause"
expect "and given back" slurm_step apply n1 resume "$back"
expect "it takes jobs" is 'idle|*' state n1

ctld stop
slurmd stop n2
sed -i '/^NodeName=n2 /s/ CPUs=1/ CPUs=64/' "$etc/slurm.conf"
ctld start
slurmd start n2
within 20 is 'inval|*' state n2
expect "a node with fewer processors is not given back" refused slurm_step apply n2 resume "$back"
exit $wrong
