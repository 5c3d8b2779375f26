#!/usr/bin/env bash
# a database copy from the middle of the bring-up under the working cluster: nothing is powered or written, and `up` re-images no node
# stands on: agent/core/agent* controller/* controller/api/services* controller/engines/local_engine*
# stands on: controller/options controller/ports/{run_ports,store}* controller/power/redfish* controller/rollout/service
# stands on: controller/{bringup,current,executor,link,nodes,run,store} playbooks/base.yaml playbooks/firewall.yaml playbooks/ssh.yaml
# stands on: playbooks/storage-local.yaml schema
source "$(dirname "$0")/lib.sh"
nodes=(node01 node02)
small_spec 2 >"$work/cluster.yaml"
lab_up
up_begins
during_up "node01 is in the middle of imaging" node_is node01 '.phase == "image" and .fraction > 0.2'
db=$MUSTER_LAB_DIR/state/muster.db
sqlite3 "$db" ".backup '$work/copy.db'"
up_ends 0
# As if it were 50 minutes old: less than the hour after which a run is given up by its age alone.
sqlite3 "$work/copy.db" "create temp table shift as select cast(strftime('%s', 'now') as integer) * 1000 - 50 * 60000 - max(time) as ms from journal;
  update journal set time = time + (select ms from shift); update event set time = time + (select ms from shift);
  update run set started = started + (select ms from shift), ended = case when ended > 0 then ended + (select ms from shift) else 0 end;
  update node set last_seen = last_seen + (select ms from shift), facts_time = facts_time + (select ms from shift)"
check "the copy has a run under way" test "$(sqlite3 "$work/copy.db" "select count(*) from run where state = 'running'")" = 1
check "the copy does not know the nodes as installed" test "$(sqlite3 "$work/copy.db" "select count(*) from node where state = 'accepted'")" = 0

power_calls() { grep -c '"ResetType"' "$MUSTER_LAB_DIR/bmc.log" || true; }
as_it_is() {   # as_it_is NODE: the boot, the root slot, and what an image would have replaced
  node_ssh "$1" "cat /proc/sys/kernel/random/boot_id; findmnt -n -o SOURCE /; cat /etc/at-work"
}
for n in "${nodes[@]}"; do
  node_ssh "$n" "echo at work | sudo tee /etc/at-work >/dev/null"
  as_it_is "$n" >"$work/$n.before"
done
before=$(power_calls)
unchanged() {
  local n
  for n in "${nodes[@]}"; do
    check "$n is as it was: boot, slot, files" sh -c "$muster lab ssh $n -- 'cat /proc/sys/kernel/random/boot_id; findmnt -n -o SOURCE /; cat /etc/at-work' | diff - '$work/$n.before'"
  done
  check "no BMC got a power request" test "$(power_calls)" = "$before"
}

controller=$(jq -r .pid "$MUSTER_LAB_DIR/musterd.pid")
kill -9 "$controller"
gone() { ! kill -0 "$controller" 2>/dev/null; }
check "the controller is stopped" wait_until 20 gone
rm -f "$db-wal" "$db-shm"
cp "$work/copy.db" "$db"
$muster lab restart-controller
check "its run is over, cancelled" test "$(journal "select state from run order by id desc limit 1")" = cancelled
check "status explains it" sh -c "$muster status --json | jq -e '.problems.database | test(\"copy\")' >/dev/null"
check "so does the log" test "$(journal "select count(*) from event where kind = 'restored'")" = 1
heard() { node_is node01 '.mode == "installed"' && node_is node02 '.mode == "installed"'; }
check "the agents say what they are" wait_until 120 heard
# Longer than a node whose power cycle has an unknown outcome is given.
sleep 200
unchanged
$muster plan --json >"$work/plan.json"
check "no plan cuts a node's power or writes its system" \
  sh -c "jq -e '[.plan.actions[].kind] | any(. == \"netboot\" or . == \"image\" or . == \"boot_disk\") | not' '$work/plan.json' >/dev/null"
expect_exit 0 $muster up --yes --report "$work/report-again"
for n in "${nodes[@]}"; do check "$n is accepted" test "$(node_state "$n")" = accepted; done
unchanged
# Of the copy's own making: a start of the same database is none.
$muster lab restart-controller --kill
check "the next start is an ordinary one" sh -c "$muster status --json | jq -e '.problems.database == null' >/dev/null"
