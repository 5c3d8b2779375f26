#!/bin/bash
. "$SRC/tests/field/nights/health.sh"
nodes 12
for node in n1 n2 n3; do slurm scontrol update nodename=$node state=drain reason="muster health: gpu_xids +1"; done
errors n9 1
# sinfo fails, and the drain would be taken.
mv "$SLURM_ROOT/usr/bin/sinfo" "$SLURM_ROOT/usr/bin/sinfo.real"
printf '#!/bin/sh\nexit 1\n' > "$SLURM_ROOT/usr/bin/sinfo"
chmod +x "$SLURM_ROOT/usr/bin/sinfo"
expect "the look succeeds: a job goes on" look n9
mv "$SLURM_ROOT/usr/bin/sinfo.real" "$SLURM_ROOT/usr/bin/sinfo"
expect "n9 is not out" is free shown n9
slurm scontrol update nodename=n1 state=undrain 2> /dev/null
expect "the finding is not lost: the next look fails" eval '! look n9'
expect "and n9 is out" is "drained muster health: *" shown n9
exit $wrong
