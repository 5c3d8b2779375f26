#!/bin/bash
# Real Slurm: slurmctld is away when a node is to be drained, and again when it is to be given back.
set -u
. "$SRC/tests/field/root.sh"
SLURM_ROOT=$root
. "$SRC/tests/field/slurm.sh"
slurm_conf 2
slurm_up || { tail -n 20 "$logs"/*; exit 1; }
away() { # COMMAND...: runs it, while slurmctld is away until sinfo has given up once
  ctld stop
  (within 60 pgrep -x sinfo && within 60 refused pgrep -x sinfo && ctld start) > /dev/null &
  local starts=$!
  "$@"
  local status=$?
  wait $starts
  return $status
}
pause='"reason":"muster reimage","deadline_seconds":120'
ctld stop
begin=$SECONDS
expect "the look does not hold" refused slurm_step check n2 drain "$pause"
expect "and is quick" test $((SECONDS - begin)) -lt 30
ctld start
expect "the drain waits" away slurm_step apply n2 drain "$pause"
expect "n2 is drained" is 'drained|muster reimage' state n2
expect "registration waits" away slurm_step apply n2 registered "$pause"
expect "giving back waits" away slurm_step apply n2 resume '"only_reason":"muster reimage","deadline_seconds":120'
expect "n2 takes jobs" within 20 is 'idle|*' state n2
expect "the test of all nodes waits" away agent apply slurm_nodes '{"nodes":[{"name":"n1"},{"name":"n2"}],"deadline_seconds":120}'
begin=$SECONDS
expect "a node that is not listed is an error" refused slurm_step apply n9 drain "$pause"
expect "at once" test $((SECONDS - begin)) -lt 20
exit $wrong
