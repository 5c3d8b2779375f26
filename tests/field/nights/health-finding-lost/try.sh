#!/bin/bash
. "$SRC/tests/field/nights/health.sh"
nodes 4
errors n2 1
ctld stop
look n2
ctld start
expect "n2 is not out yet" is free shown n2
expect "the next look finds it" eval '! look n2'
expect "n2 is out" is "drained muster health: memory_uncorrected +1" shown n2
# It survives a restart, and counted once.
ctld stop && ctld start
expect "n2 is out after a restart" is "drained muster health: *" shown n2
slurm scontrol update nodename=n2 state=undrain 2> /dev/null
expect "given back, nothing is new" look n2
expect "n2 is back" is free shown n2
exit $wrong
