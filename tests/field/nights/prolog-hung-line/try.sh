#!/bin/bash
. "$SRC/tests/field/nights/stack.sh"
slurm_conf 1
content scheduler configuration | grep -E '^(Prolog|MessageTimeout)=' >> "$etc/slurm.conf"
content scheduler health node.name=n1 > "$etc/muster-health"
chmod +x "$etc/muster-health"
mkdir -p "$SLURM_ROOT/usr/lib/muster"
# A busy node: counters in 4 of 5 s, processors in 7 of 8 s.
cat > "$SLURM_ROOT/usr/lib/muster/muster-accept" <<'F'
#!/bin/sh
if [ "$1" = sdc ]; then sleep 7; echo '{"check":"sdc"}'; exit; fi
if [ "$2" = --save ]; then echo saved > "$3"; exit; fi
sleep 4
echo '{"check":"counters","metrics":{"gpu_xids":{"unit":"","value":0}},"detail":{}}'
F
chmod +x "$SLURM_ROOT/usr/lib/muster/muster-accept"
touch "$run/muster-health.json"
slurm_up || { tail -5 "$logs"/*.log; exit 1; }
said=$(slurm srun hostname 2>&1)
expect "the job runs without a word: $said" [ "$said" = "$(hostname)" ]
exit $wrong
