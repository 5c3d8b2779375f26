#!/bin/bash
# 300 hosts that are shells of this machine. What runs on them is a script in place of the agent.
set -eu
mkdir -p "$WORK/tree/build" "$WORK/state"
ln -s "$SRC/playbooks" "$WORK/tree/playbooks"
cp "$BUILD/muster" "$WORK/tree/build/"
ln -s "$BUILD/muster-accept" "$WORK/tree/build/"
cat >"$WORK/tree/build/muster-agent" <<AGENT
#!/bin/sh
[ "\$1" = measure ] || exit 0
while [ \$# -gt 0 ]; do
  case \$1 in --folder) folder=\$2 ;; --node) node=\$2 ;; esac
  shift
done
rm -rf "\$folder"
ulimit -Sn >>"$WORK/soft"
printf '\nMUSTER1 {"version":1,"boot_id":"boot-%s","incarnation":"i-%s","machine":"x86_64","hostname":"%s","root":false,"how":"user","folder":"/dev/shm","agent_version":"0"}\n' \$node \$node \$node
printf '{"looked":{"facts":{},"look":{"busy":[]}}}\n'
while :; do printf '{"alive":true}\n'; sleep 10; done &
cat >/dev/null
kill \$!
AGENT
chmod 755 "$WORK/tree/build/muster-agent"
export XDG_STATE_HOME=$WORK/state
accept() { "$WORK/tree/build/muster" accept --hosts 'n[001-300]' --via 'env ON={host}' --drift-only --json; }

ulimit -Sn 1024
ulimit -Hn 20000
got=0
accept >"$WORK/json" || got=$?
[[ $got -eq 0 && $(jq '[.hosts[] | select(.verdict == "looked_at")] | length' "$WORK/json") -eq 300 ]] ||
  { echo "exit $got"; jq -r '.hosts[] | [.verdict, .reason] | @tsv' "$WORK/json" | sort | uniq -c; exit 1; }
[[ $(sort -u "$WORK/soft") == 1024 ]] || { echo "what was started has another limit: $(sort "$WORK/soft" | uniq -c)"; exit 1; }

rm "$WORK/soft"
ulimit -Hn 1024
got=0
accept >"$WORK/json" || got=$?
[[ $got -eq 2 && ! -e $WORK/soft ]] || { echo "exit $got with a hard limit of 1024"; cat "$WORK/json"; exit 1; }
