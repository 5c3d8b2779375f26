#!/bin/bash
# For cases of the health check: nodes n1, n2 ... of a real slurmctld, each with the check as the playbook gives it, over a muster-accept that counts
# what a case says. Sourced by try.sh.
#   nodes N              starts slurmctld with N nodes; each check has looked once
#   errors NODE NUMBER   how many uncorrected memory errors the node has counted by now
#   look NODE            the check looks; its exit status
#   all_look N           all of them at the same time
#   out                  how many nodes are taken out;  shown NODE: "drained reason" or "free"
. "$SRC/tests/field/nights/stack.sh"
mkdir -p "$SLURM_ROOT/usr/lib/muster"
cat > "$SLURM_ROOT/usr/lib/muster/muster-accept" <<'F'
#!/bin/sh
[ "$1" = counters ] || exit 0
count=$(cat /run/$NODE-errors)
if [ "$2" = --save ]; then echo $count > $3; exit; fi
echo '{"check":"counters","metrics":{"gpu_xids":{"unit":"","value":0},"memory_uncorrected":{"unit":"","value":'$((count - $(cat $3)))'}},"detail":{}}'
F
printf '#!/bin/sh\necho "$NODE $*" >> /run/log\n' > "$SLURM_ROOT/usr/bin/logger"
chmod +x "$SLURM_ROOT/usr/lib/muster/muster-accept" "$SLURM_ROOT/usr/bin/logger"

errors() { echo "$2" > "$run/$1-errors"; }
look() { slurm env NODE="$1" "/run/$1-health" "${@:2}" 2>> "$WORK/looks.log"; }
all_look() {
  local pids=()
  for node in $(seq -f 'n%g' "$1"); do
    look "$node" &
    pids+=($!)
  done
  wait "${pids[@]}"
}
shown() {
  slurm sinfo -h -N -n "$1" -O StateComplete:64,Reason:256 |
    awk '{ drained = $1 ~ /drain/; sub(/^[^ ]+ +/, ""); sub(/ +$/, ""); print drained ? "drained " $0 : "free"; exit }'
}
out() { for node in $slurm_nodes; do shown "$node"; done | grep -c '^drained muster health: '; }
nodes() {
  slurm_conf "$1"
  munge_up && ctld start || exit 1
  for node in $slurm_nodes; do
    content scheduler health "node.name=$node" | sed "s#/run/muster-health#/run/$node-state#g" > "$run/$node-health"
    chmod +x "$run/$node-health"
    errors "$node" 0
    look "$node"
  done
}
