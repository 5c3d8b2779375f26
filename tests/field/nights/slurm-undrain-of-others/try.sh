#!/bin/bash
# Real Slurm: `muster undrain` of nodes of which one was drained by `muster drain`, and one by a person.
set -u
. "$SRC/tests/field/root.sh"
SLURM_ROOT=$root
. "$SRC/tests/field/slurm.sh"
slurm_conf 2
slurm_up || { tail -n 20 "$logs"/*; exit 1; }
undrain=$(awk '/phase: undrain/ { getline; getline; print }' "$SRC/playbooks/scheduler.yaml" | sed 's/.*{ node: "{{node.name}}", state: resume,* *//; s/ *}$//; s/\([a-z_]*\):/"\1":/g')
expect "n1 is drained" slurm_step apply n1 drain '"deadline_seconds":20'
slurm scontrol update nodename=n2 state=drain reason="broken NVLink, ticket 4711"
for node in n1 n2; do expect "undrain of $node" slurm_step apply "$node" resume "$undrain"; done
expect "n1 takes jobs" is 'idle|*' state n1
expect "n2 is left to its person" is 'drained|broken NVLink, ticket 4711' state n2
exit $wrong
