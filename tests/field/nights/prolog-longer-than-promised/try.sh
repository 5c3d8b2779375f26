#!/bin/bash
# Everything that the check calls hangs, or answers as late as it may, with a finding to decide and an older one undecided.
RELEASES=13
. "$SRC/tests/field/nights/stack.sh"
limit=$(content scheduler configuration | sed -n 's/^MessageTimeout=//p')
content scheduler health node.name=n1 > "$run/health"
mkdir -p "$SLURM_ROOT/usr/lib/muster"
cat > "$SLURM_ROOT/usr/lib/muster/muster-accept" <<'F'
#!/bin/sh
trap '' TERM
[ "$1" = sdc ] || exec sleep 100
sleep 6.5
echo '{"check":"sdc"}'
exit 1
F
cat > "$SLURM_ROOT/usr/bin/sinfo" <<'F'
#!/bin/sh
sleep 4.5
echo "n1 idle$(cat /run/drained 2> /dev/null) 100 $(cat /run/muster-health.claim 2> /dev/null)"
# The others are out only when it reads after it has written: at first, and at last.
read -r reads < /run/reads
echo $((reads + 1)) > /run/reads
[ "$reads" = 1 ] || others=+drain
for i in 2 3 4; do echo "n$i idle$others 50 muster health: x"; done
F
printf '#!/bin/sh\ncase $3 in state=drain) echo +drain > /run/drained ;; *) : > /run/drained ;; esac\nsleep 4.5\n' > "$SLURM_ROOT/usr/bin/scontrol"
chmod +x "$SLURM_ROOT/usr/lib/muster/muster-accept" "$SLURM_ROOT/usr/bin/sinfo" "$SLURM_ROOT/usr/bin/scontrol"
touch "$run/muster-health.json"
echo "muster health: older" > "$run/muster-health.claim"
echo +drain > "$run/drained"
echo 0 > "$run/reads"
began=$SECONDS
slurm sh /run/health 2> /dev/null
took=$((SECONDS - began))
expect "it really took long, $took s" [ $took -gt 40 ]
expect "$took s are less than $limit s less two" [ $took -lt $((${limit:-10} - 2)) ]
exit $wrong
