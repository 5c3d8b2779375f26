#!/bin/bash
# Real Slurm of three nodes: the head kept off by its operator, one out for repair, one at work.
set -u
. "$SRC/tests/field/root.sh"
SLURM_ROOT=$root
. "$SRC/tests/field/slurm.sh"
slurm_conf 3
slurm_up || { tail -n 20 "$logs"/*; exit 1; }
slurm scontrol update nodename=n1 state=drain reason=head
slurm scontrol update nodename=n3 state=drain reason="RMA 123 | Ann"
within 20 is 'drained|*' state n3
all='{"name":"n1"},{"name":"n2"},{"name":"n3"}'
states() { agent apply slurm_nodes "{\"nodes\":[$all],\"deadline_seconds\":5}"; }
expect "the test of all nodes passes" states
# Stands in for the all-reduce, which needs MPI: its result, with the ranks that srun started.
cat > "$root/usr/local/bin/ranks" << 'RANKS'
#!/bin/sh
[ "$SLURM_PROCID" != 0 ] || echo "{\"outcome\":\"measured\",\"metrics\":{\"ranks\":{\"value\":$SLURM_NTASKS}}}"
RANKS
chmod 755 "$root/usr/local/bin/ranks"
job() { agent apply slurm_mpi "{\"hosts\":[$all],\"user\":\"root\",\"mpi\":\"none\",\"program\":\"/usr/local/bin/ranks\",\"deadline_seconds\":60}"; }
expect "the test job runs on the others" job
expect "it ran" grep -q '"already":1' "$WORK/agent.log"
for words in 'n1 is drained by root since 2' ': head' 'n3 is drained by root since 2' 'RMA 123 | Ann'; do
  expect "$words is in the remark" grep -qF "$words" "$WORK/agent.log"
done
expect "the head stays out" is 'drained|head' state n1
untested() { [ "$(grep -c '"not_applicable":1' "$WORK/agent.log")" -eq "$1" ]; }
slurm scontrol update partitionname=all state=drain
expect "with a partition that a person has drained nothing is tested, and nothing fails" job
expect "that is said" untested 1
slurm scontrol update partitionname=all state=inactive
expect "nor with an inactive one" job
expect "that is said as well" untested 2
slurm scontrol update partitionname=all state=up
slurm scontrol update nodename=n2 state=drain reason=head
expect "without any node nothing is tested, and nothing fails" job
expect "that is said, too" untested 3

# The drain of a node that is out already.
expect "it is drained" slurm_step apply n3 drain '"reason":"muster reimage","deadline_seconds":5'
expect "and not resumed" slurm_step apply n3 resume '"only_reason":"muster reimage","deadline_seconds":5'
expect "with its own reason" is 'drained|RMA 123 | Ann' state n3
exit $wrong
