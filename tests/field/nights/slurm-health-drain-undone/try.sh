#!/bin/bash
# Real Slurm: one node drained by muster's health check, one by a person whose reason begins like muster's.
set -u
. "$SRC/tests/field/root.sh"
SLURM_ROOT=$root
. "$SRC/tests/field/slurm.sh"
slurm_conf 2
slurm_up || { tail -n 20 "$logs"/*; exit 1; }
slurm scontrol update nodename=n1 state=drain reason="muster health: memory_uncorrected +2 (mc1)"
slurm scontrol update nodename=n2 state=drain reason="mustering out: replace this old box"
measure() { printf '#!/bin/sh\necho measured >> /run/measured\n%s\n' "$1" > "$root/usr/local/bin/measure"; chmod 755 "$root/usr/local/bin/measure"; }
given_back() { slurm_step apply "$1" resume "\"only_reason\":\"muster\",\"deadline_seconds\":5${2:+,\"measure\":[\"$2\"]}"; }
measure 'echo "memory_uncorrected +1"; exit 1'
expect "without a measurement the step passes" given_back n1
expect "and n1 stays out" is 'drained|muster health: *' state n1
expect "a failed measurement fails no step" given_back n1 measure
expect "it was made" test -e "$run/measured"
expect "n1 stays out, still" is 'drained|muster health: *' state n1
expect "with what was found" grep -q 'memory_uncorrected +1' "$WORK/agent.log"
expect "a person's drain fails no step" given_back n2 measure
expect "n2 stays out" is 'drained|mustering out: *' state n2
measure 'exit 0'
expect "after a measurement that passes" given_back n1 measure
expect "n1 takes jobs" is 'idle|*' state n1
exit $wrong
