#!/usr/bin/env bash
# MooseFS: the master's machine dies, the spec names another: the files are there; the old one comes back, begins nothing, and follows
# stands on: agent/storage/{health,metadata,moosefs,parts,shared}* controller/engines/{engine,moosefs_engine}*
# stands on: controller/plan/storage_leaders* controller/power/redfish* playbooks/base.yaml playbooks/firewall.yaml playbooks/ssh.yaml
# stands on: playbooks/storage-shared.yaml
source "$(dirname "$0")/lib.sh"
# The quickstart's three machines without the local arrays and MPI: this is about the shared file system.
spec_from_quickstart -e 's/\[ base, .*mpi \]/[ base, ssh, firewall, storage-shared ]/' -e '/^ *fast:/d; /name: fast/d; /^  scratch:/d; /^acceptance:/d' \
  -e 's/^  shared: *{ engine: moosefs,/  shared: { engine: moosefs, server: node01,/'
grep -q 'server: node01' "$work/cluster.yaml" || die "the quickstart's spec has changed: no MooseFS section to edit"
mount=$(sed -n 's/^  shared:.*mount: \([^, }]*\).*/\1/p' "$work/cluster.yaml")
lab_up
up_begins && up_ends 0
nodes=(node01 node02 node03)

master_runs() { node_ssh "$1" systemctl is-active --quiet moosefs-master; }
mounted_from() {  # mounted_from NODE MASTER
  local at
  at=$(node_ssh "$1" findmnt -no SOURCE "$mount") && [[ $at == *"$(address "$2"):9421" ]]
}
address() { $muster status --json | jq -r --arg n "$1" '.nodes[] | select(.name == $n) | .address'; }
write() { node_ssh "$1" "head -c 3000000 /dev/urandom >$mount/$2 && sync $mount/$2 && sha256sum <$mount/$2"; }
sum() { node_ssh "$1" "timeout 60 sha256sum <$mount/$2"; }

check "node01 is the master" master_runs node01
for n in node02 node03; do
  check "$n has a whole copy of the metadata from the beginning" wait_until 60 node_ssh "$n" sudo test -s /state/mfs/metalogger/metadata_ml.mfs.back
  check "$n is no master" fails_on "$n" "systemctl is-active --quiet moosefs-master"
done
early=$(write node02 early)
sleep 5   # the logger writes to disk once a second
late=$(write node03 late)
sleep 5

# In order: the old one is alive. What it wrote last is there.
sed -i 's/server: node01/server: node03/' "$work/cluster.yaml"
got=0
$muster up "$work/cluster.yaml" --yes --limit node01 >"$work/limited.log" 2>&1 || got=$?
[[ $got -eq 4 ]] || tail -n 30 "$work/limited.log" >&2
check "a plan without the new master does not stop the old one (exit $got)" test "$got" = 4
check "it still runs" master_runs node01
expect_exit 0 $muster up "$work/cluster.yaml" --yes
check "node03 is the master" master_runs node03
check "node01 is not" fails_on node01 "systemctl is-enabled --quiet moosefs-master || systemctl is-active --quiet moosefs-master"
for n in "${nodes[@]}"; do
  check "$n has it mounted from node03" mounted_from "$n" node03
  check "$n reads what was written before" test "$(sum "$n" early) $(sum "$n" late)" = "$early $late"
done
third=$(write node01 third)
check "node01 has its copy now" wait_until 60 node_ssh node01 sudo test -s /state/mfs/metalogger/metadata_ml.mfs.back
sleep 5

# Hard: the master's machine loses power and is out for good, as far as anybody knows.
$muster power off node03 --yes >/dev/null
$muster node quarantine node03 --reason "its mainboard" >/dev/null
sed -i 's/server: node03/server: node02/' "$work/cluster.yaml"
got=0
$muster up "$work/cluster.yaml" --yes >"$work/hard.log" 2>&1 || got=$?
[[ $got -eq 0 || $got -eq 3 ]] || { tail -n 30 "$work/hard.log"; die "the take-over (exit $got)"; }
check "the two others are accepted" test "$(node_state node01) $(node_state node02)" = "accepted accepted"
check "node02 is the master" master_runs node02
check "from its metadata logger's copy" node_ssh node02 sudo test -s /state/mfs/metalogger/metadata_ml.mfs.back
for n in node01 node02; do
  check "$n has it mounted from node02" mounted_from "$n" node02
  check "$n reads all of it" test "$(sum "$n" early) $(sum "$n" late) $(sum "$n" third)" = "$early $late $third"
done
fourth=$(write node01 fourth)

# The process behind a mount dies, as of want of memory: systemd brings it back.
node_ssh node01 sudo pkill -9 -x mfsmount
reads_again() { [[ $(timeout 30 "$muster" lab ssh node01 -- "timeout 20 sha256sum <$mount/fourth" 2>/dev/null) == "$fourth" ]]; }
check "a mount whose process is gone comes back by itself" wait_until 120 reads_again

# It comes back by itself, with what it knew and its master enabled.
$muster power on node03 >/dev/null
wait_until 900 node_ssh node03 true || die "node03 does not come back"
check "node03 still has its stale metadata" node_ssh node03 sudo sh -c "'ls /state/mfs/master/metadata*' >/dev/null"
asked() { [[ $(node_ssh node03 sudo journalctl -b -u moosefs-master --no-pager) == *"another one answers"* ]]; }
check "its unit asked the others" wait_until 180 asked
check "and began nothing" fails_on node03 "systemctl is-active --quiet moosefs-master"
$muster node quarantine node03 --release >/dev/null
expect_exit 0 $muster up "$work/cluster.yaml" --yes
check "node03 follows" mounted_from node03 node02
check "its stale metadata is put aside, not lost" node_ssh node03 sudo sh -c "'ls /state/mfs/master.retired*/metadata* >/dev/null && ! ls /state/mfs/master/metadata* 2>/dev/null'"
check "it reads what it never knew" test "$(sum node03 fourth)" = "$fourth"
for n in node01 node03; do check "$n is no master" fails_on $n "systemctl is-active --quiet moosefs-master"; done
$muster up "$work/cluster.yaml" --yes >"$work/again.log" || { tail -n 30 "$work/again.log"; die "the second up"; }
check "the second up says that nothing changed" grep -q "already accepted, nothing changed" "$work/again.log"

# An old copy is not taken without a word, and nothing is stopped for it.
node_ssh node01 sudo sh -c "'systemctl stop moosefs-metalogger; find /state/mfs/metalogger /state/mfs/master.retired* -type f -exec touch -d \"3 hours ago\" {} +'"
sed -i 's/server: node02/server: node01/' "$work/cluster.yaml"
got=0
$muster up "$work/cluster.yaml" --yes >"$work/old.log" 2>&1 || got=$?
check "the run fails (exit $got)" test "$got" != 0
consent_named() { node_is node01 '.reason | contains("--force node01")' || { tail -n 30 "$work/old.log" >&2; return 1; }; }
check "the age is named, and how to consent" consent_named
check "node02 is still the master" master_runs node02
