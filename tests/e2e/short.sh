#!/usr/bin/env bash
# three machines from blank to accepted; a second `up` changes nothing; no secret anywhere; nothing left behind
# stands on: agent/* agent/steps/* agent/steps/{disk,files,network,services,system}
# stands on: agent/storage/{health,metadata,moosefs,parts,shared,storage_state}*
# stands on: agent/{boot,checks,core,disk,facts,image,joining,link,measuring,work} base cli controller/*
# stands on: controller/engines/{engine,local_engine,moosefs_engine}* controller/hosts/hosts_spec*
# stands on: controller/options controller/ports/{power,run_ports,store}* controller/power/service/power_service*
# stands on: controller/power/{bmc_json,logins,redfish,waiter,wrap}* controller/power/describe controller/rollout/service
# stands on: controller/{api,boot,bringup,current,executor,image,link,locate,nodes,plan,report,run,spec,store,trust} hardware host
# stands on: images/debian-12.yaml kernels/* kernels/{common,counters,cpu,drives,link,rdma,together,training} lab lab/* playbooks/acceptance/lab.yaml
# stands on: playbooks/base.yaml playbooks/firewall.yaml playbooks/mpi.yaml playbooks/ssh.yaml playbooks/storage-local.yaml
# stands on: playbooks/storage-shared.yaml schema sys systemd
source "$(dirname "$0")/lib.sh"
cp lab/quickstart.yaml "$work/cluster.yaml"

# A namespace of the lab's name in which a foreign process runs is left alone; what a killed lab left is replaced.
if [[ -z $(ip netns pids muster-quickstart 2>/dev/null) ]]; then ip netns del muster-quickstart 2>/dev/null || true; fi
ip netns add muster-quickstart
ip -n muster-quickstart link add br0 address 52:54:00:20:ff:01 type bridge
ip netns exec muster-quickstart sleep 1000 &
other=$!
until [[ -n $(ip netns pids muster-quickstart) ]]; do kill -0 "$other"; done
check "a lab does not touch a namespace in use" sh -c "! $muster lab up '$work/cluster.yaml' 2>'$work/refused'"
check "and says whose it may be" grep -q "belongs to another lab" "$work/refused"
check "the other's bridge is still there" sh -c "ip -n muster-quickstart link show br0 >/dev/null"
kill "$other"; wait "$other" || true
$muster lab up "$work/cluster.yaml"
echo "  ok: what a killed lab left behind is replaced"

start=$SECONDS
$muster up "$work/cluster.yaml" --yes --report "$work/report" | tee "$work/up.log"
echo "  bring-up took $((SECONDS - start)) s"
check "three of three accepted" test "$(jq -r '[.nodes[] | select(.verdict == "accepted")] | length' "$work/report/report.json")" = 3
check "the report says that the hardware is simulated" grep -q "SIMULATED HARDWARE" "$work/report/report.html"
check "the report names the disks that were written over, among them every OS disk" \
  test "$(jq '[.destroyed[] | select(.group == "os") | .node] | unique | length' "$work/report/report.json")" = 3
check "JUnit was written" grep -q "<testsuite" "$work/report/junit.xml"

start=$SECONDS
$muster up "$work/cluster.yaml" --yes --report "$work/report2" | tee "$work/again.log"
check "the second up says that nothing changed" grep -q "already accepted, nothing changed" "$work/again.log"
check "the second up took under 30 s ($((SECONDS - start)) s)" test $((SECONDS - start)) -lt 30

# The effects, seen from outside muster.
check "a panic restarts the machine, and the kernel leaves out the timer check that a busy host fails" \
  sh -c "$muster lab ssh node01 -- cat /proc/cmdline | tr ' ' '\n' | grep -cx -e panic=30 -e no_timer_check | grep -qx 2"
check "local scratch is XFS on RAID0" node_ssh node01 findmnt -n -o FSTYPE /scratch
check "the shared volume is MooseFS" sh -c "$muster lab ssh node02 -- findmnt -n -o FSTYPE /shared | grep -q fuse"
node_ssh node01 sudo sh -c "'echo from-node01 > /shared/e2e && sync'"
check "a file written on node01 is read on node03" sh -c "$muster lab ssh node03 -- cat /shared/e2e | grep -q from-node01"

# No secret in logs, arguments, plans or the report.
secret=$(cat "$MUSTER_LAB_DIR"/bmc-secret)
check "the BMC password is in no log and no report" nowhere_in "${secret##*:}" "$MUSTER_LAB_DIR"/*.log "$work/report" "$work/up.log"
check "no join token is in the controller's log" nowhere_in -E 'muster.token=[0-9a-f]{16}' "$MUSTER_LAB_DIR"/musterd.log
check "no private key is in a log or report" nowhere_in -E 'BEGIN (OPENSSH |EC )?PRIVATE KEY' "$MUSTER_LAB_DIR"/*.log "$work/report"

note_used
$muster lab down
left() { ip netns list | grep -q '^muster-quickstart' || pgrep -f "$MUSTER_LAB_DIR/" >/dev/null; }
if left; then die "something is left behind: $(pgrep -af "$MUSTER_LAB_DIR/")"; fi
echo "  ok: nothing is left behind"
