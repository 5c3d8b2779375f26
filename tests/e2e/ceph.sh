#!/usr/bin/env bash
# CephFS on three machines (Debian 13) over a storage network: cross-node checksum, node loss with a verified read, drain without a degraded group, removal
# stands on: agent/steps/network/{networks,port_choice}* agent/storage/{ceph,health,metadata,parts,shared,storage_state}* agent/steps/system/slot*
# stands on: controller/engines/{ceph_engine,engine,local_engine}* controller/link/storage_reports*
# stands on: controller/plan/{drain,interconnect,storage_context,storage_leaders}* controller/power/redfish* images/debian-13.yaml
# stands on: playbooks/acceptance/lab.yaml playbooks/base.yaml playbooks/firewall.yaml playbooks/mpi.yaml playbooks/networks.yaml playbooks/ssh.yaml
# stands on: playbooks/storage-ceph.yaml playbooks/storage-local.yaml
source "$(dirname "$0")/lib.sh"
playbooks="base, ssh, firewall, networks, storage-local, storage-ceph, mpi"
ceph_skips_benchmark
spec_from_quickstart \
  -e "s/recipe: debian-12/recipe: debian-13/; s/bake: \[.*\]/bake: [ $playbooks ]/; s/playbooks: \[.*\]/playbooks: [ $playbooks ]/" \
  -e 's/^  shared: .*/  shared:  { engine: ceph, disks: bulk, copies: 2, mount: \/shared }/; s/memory_mib: .*/memory_mib: 3072\n  storage_nic: true/' \
  -e 's/^cluster: .*/&\nplaybooks: [ own ]/' -e '/^  bmc: /a\  storage:      { cidr: 10.30.0.0/24, mtu: 9000, port: "0000:01:00.0" }' \
  -e 's/name: bulk, size: 2 GiB/name: bulk, size: 4 GiB/; s/LABBULK\*", size: 2 GiB/LABBULK*", size: 4 GiB/'
lab_up
start=$SECONDS
$muster up "$work/cluster.yaml" --yes --report "$work/report" | tee "$work/up.log"
echo "  bring-up of 3 machines took $((SECONDS - start)) s"
check "3 of 3 accepted" test "$(jq -r '[.nodes[] | select(.verdict == "accepted")] | length' "$work/report/report.json")" = 3

on() { node_ssh "$@"; }
ceph() { on node01 sudo ceph --connect-timeout 30 "$@"; }
quorum() { ceph quorum_status -f json | jq -r '.quorum_names | join(" ")'; }
check "three monitors agree" test "$(quorum)" = "node01 node02 node03"
over_storage() { jq -e "[$1 | .addrvec[].addr] | length > 0 and all(startswith(\"10.30.0.\"))" >/dev/null; }
check "they speak over the storage network" over_storage '.mons[].public_addrs' < <(ceph mon dump -f json)
check "so do the object stores, with clients and with each other" over_storage '.osds[] | .public_addrs, .cluster_addrs' < <(ceph osd dump -f json)
# Debian 13's manager cannot load most of its modules; nothing else may be amiss.
healthy() { ceph health -f json | jq -e '.checks | keys - ["MGR_MODULE_DEPENDENCY"] == []' >/dev/null; }
check "Ceph is healthy" healthy
ceph osd tree
check "one object store on each machine" test "$(ceph osd tree -f json | jq '[.nodes[] | select(.type == "host" and (.children | length) == 1)] | length')" = 3
check "it is the kernel's mount of this cluster" \
  sh -c "$muster lab ssh node03 -- findmnt -n -o FSTYPE,SOURCE /shared | grep -q \"^ceph *muster@$(ceph fsid | tr -d '\r').shared=/\""
# The keys, wherever muster writes.
for key in muster-admin.secret muster.secret; do
  check "$key is in no log, plan or report" \
    nowhere_in "$(on node01 sudo cat /etc/ceph/$key | tr -d '\r')" "$MUSTER_LAB_DIR"/musterd.log "$work/report" "$work/up.log"
done

on node02 sudo sh -c "'dd if=/dev/urandom of=/shared/blob bs=1M count=16 conv=fsync 2>/dev/null; sha256sum /shared/blob'" >"$work/blob"
check "written on node02, the same on node03" sh -c "$muster lab ssh node03 -- sha256sum /shared/blob | diff - '$work/blob'"

# The monitors' nodes ask once a minute; where that takes seconds, as emulated, every five.
told() { $muster status --json | jq -e ".storage[] | select(.name == \"shared\") | $1" >/dev/null; }
wait_until 600 told '.healthy == true' || $muster status --json | jq -c .storage >&2
check "muster status says that Ceph is healthy" told '.healthy == true'

# A node goes, by its power button.
up_osds() { [[ $(ceph osd stat -f json | jq .num_up_osds) -eq $1 ]]; }
$muster power off node03 --yes
check "the monitors lost node03's object store" wait_until 240 up_osds 2
check "two monitors go on" test "$(quorum)" = "node01 node02"
# An agent queries Ceph as soon as it starts. That it does so again by itself shows below, when all is well.
on node01 sudo systemctl restart muster-agent
check "muster status has Ceph's words" wait_until 600 told '.healthy == false and any(.problems[]; .problem | contains("OSD_DOWN"))'
on node01 sudo sh -c "'echo 3 > /proc/sys/vm/drop_caches'"
check "the data is read and right without node03" sh -c "$muster lab ssh node01 -- sha256sum /shared/blob | diff - '$work/blob'"
check "and written without it" on node02 sudo sh -c "'dd if=/dev/urandom of=/shared/more bs=1M count=4 conv=fsync 2>/dev/null'"
$muster power on node03
check "node03's object store is back" wait_until 300 up_osds 3
check "Ceph is healthy again" wait_until 300 healthy
again() { $muster lab ssh node03 -- sha256sum /shared/blob 2>/dev/null | diff -q - "$work/blob" >/dev/null; }
check "it mounted the volume by itself, and reads the same" wait_until 120 again
check "all is well in muster status" wait_until 600 told '.healthy == true'

# Drain, then take it away for good.
clean() { ceph pg stat -f json | jq -e '.pg_summary.num_pg_by_state | all(.name | startswith("active+clean"))' >/dev/null; }
online() { $muster status --json | jq -e '.nodes[] | select(.name == "node03") | .last_seen > (now - 20) * 1000' >/dev/null; }
check "its agent is back" wait_until 120 online
start=$SECONDS
$muster drain node03 --yes
echo "  the drain took $((SECONDS - start)) s"
check "node03 is drained" test "$(node_state node03)" = drained
check "no group is degraded before it goes" clean
$muster power off node03 --yes
check "it is gone" wait_until 240 up_osds 2
check "no group is degraded after it went" clean
check "the data is the same" sh -c "$muster lab ssh node02 -- sha256sum /shared/blob | diff - '$work/blob'"
sed 's/node\[01-03\]/node[01-02]/; s/, "52:54:00:20:00:03"//' "$work/cluster.yaml" >"$work/fewer.yaml"
$muster up "$work/fewer.yaml" --yes --report "$work/report-fewer" | tail -3
check "the others are accepted without it" test "$(jq -r '[.nodes[] | select(.verdict == "accepted")] | length' "$work/report-fewer/report.json")" = 2
check "Ceph knows two object stores" test "$(ceph osd ls | wc -l)" = 2
check "and one monitor, as two would stop with either" test "$(quorum)" = node01
check "and is healthy" wait_until 120 healthy

# A re-imaged node finds its data and its place again.
uuids() { ceph osd dump -f json | jq -r '.osds[].uuid' | sort; }
before=$(uuids)
$muster reimage node02 --yes --report "$work/report-again" | tail -3
check "node02 is accepted again" test "$(node_state node02)" = accepted
check "with the object store it had" test "$(uuids)" = "$before"
check "the data is the same there" sh -c "$muster lab ssh node02 -- sha256sum /shared/blob | diff - '$work/blob'"
check "Ceph is healthy at the end" wait_until 120 healthy
