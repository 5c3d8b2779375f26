#!/bin/bash
. "$SRC/tests/field/nights/health.sh"
nodes 8
slurm scontrol update nodename=n3 state=drain reason="RMA 17"
errors n3 1
look n3
expect "the reason stays" is "drained RMA 17" shown n3
slurm scontrol update nodename=n3 state=undrain 2> /dev/null
look n3
expect "the finding is held when the drain ends" is "drained muster health: memory_uncorrected +1 *" shown n3
slurm scontrol update nodename=n5 state=fail reason="RMA 18"
errors n5 1
look n5
expect "and so with a node in the state fail" is 'fail*|RMA 18' state n5
# Two are out (a quarter of eight); the third one's drain is taken over by its operator before it is undone.
slurm scontrol update nodename=n1,n2 state=drain reason="muster health: x"
slurm scontrol update nodename=n3 state=undrain 2> /dev/null
slurm scontrol update nodename=n2 state=undrain 2> /dev/null
errors n4 1
(sleep 1; slurm scontrol update nodename=n2 state=drain reason="muster health: x"; slurm scontrol update nodename=n4 reason="mine") &
look n4
wait
expect "what an operator has taken over stays" is "drained mine" shown n4
exit $wrong
