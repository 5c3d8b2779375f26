#!/usr/bin/env bash
# the software stack on four machines: Slurm with PMIx, monitoring, NFS and MooseFS with node loss, drain and removal, firewall
# stands on: agent/* agent/image/boot_network* agent/steps/* agent/steps/{disk,files,network,packages,services,system}
# stands on: agent/storage/{health,metadata,moosefs,nfs,parts,shared,storage_state}* agent/{boot,core,facts,joining,link,measuring,work} base
# stands on: cli controller/* controller/engines/{engine,local_engine,moosefs_engine,nfs_engine}* controller/hosts/hosts_spec*
# stands on: controller/options controller/ports/{power,run_ports,store}* controller/power/redfish* controller/power/service/power_service*
# stands on: controller/rollout/service controller/{api,bringup,current,executor,link,nodes,plan,report,run,spec,store} host kernels/*
# stands on: kernels/{common,counters,cpu,drives,link,rdma,together,training} playbooks/base.yaml playbooks/firewall.yaml playbooks/hpc.yaml
# stands on: playbooks/monitoring.yaml playbooks/mpi.yaml playbooks/scheduler.yaml playbooks/ssh.yaml playbooks/storage-local.yaml
# stands on: playbooks/storage-nfs.yaml playbooks/storage-shared.yaml sys
# weakened by: STACK_NODES
source "$(dirname "$0")/lib.sh"
playbooks="base, ssh, firewall, storage-local, storage-shared, storage-nfs, mpi, hpc, scheduler, monitoring"
nodes=${STACK_NODES:-4}   # 3 when time is short: everything but the last two lines means the same
last=node0$nodes
macs=$(for i in $(seq "$nodes"); do printf '%s"52:54:00:20:00:0%d"' "${sep:-}" "$i"; sep=", "; done)
spec_from_quickstart \
  -e "s/node\[01-03\]/node[01-0$nodes]/; s/mac: \[.*\]/mac: [ $macs ]/" \
  -e "s/bake: \[.*\]/bake: [ $playbooks ]/; s/playbooks: \[.*\]/playbooks: [ $playbooks ]/" \
  -e 's/^      bulk: .*/&\n      home: { match: { serial: "LABHOME*", size: 1 GiB, count: 1 }, policy: format-if-blank }/' \
  -e 's/^  shared: .*/&\n  home: { engine: nfs, server: node01, disks: home, mount: \/home\/shared }/' \
  -e 's/^    - { name: bulk, .*/&\n    - { name: home, size: 1 GiB, serial_prefix: LABHOME }/'
$muster lab up "$work/cluster.yaml"
start=$SECONDS
$muster up "$work/cluster.yaml" --yes --report "$work/report" | tee "$work/up.log"
echo "  bring-up of $nodes machines took $((SECONDS - start)) s"
check "$nodes of $nodes accepted" test "$(jq -r '[.nodes[] | select(.verdict == "accepted")] | length' "$work/report/report.json")" = $nodes

on() { node_ssh "$@"; }
# Slurm: the job is started by hand here, whatever muster's own step said.
on node01 sudo runuser -u mpi -- srun --mpi=pmix -N$nodes -n$nodes --chdir=/tmp /usr/lib/muster/muster-mpi-check --seconds 1 --max-bytes 65536 >"$work/mpi.json"
check "srun --mpi=pmix: an all-reduce over $nodes ranks, every element verified" \
  sh -c "jq -e '.outcome == \"measured\" and .metrics.ranks.value == $nodes' '$work/mpi.json' >/dev/null"
check "no munge key is in a log, plan or report" \
  nowhere_in "$(on node01 sudo cat /etc/munge/munge.key | tr -d '\r')" "$MUSTER_LAB_DIR"/musterd.log "$work/report" "$work/up.log"

targets() { on node01 curl -s 'http://node01:9090/api/v1/query?query=up' | jq -r "[.data.result[] | select(.value[1] == \"$1\")] | length"; }
# A scrape that took an emulated processor more than ten seconds is a target down until the next one, a quarter of a minute later.
all_up() { [[ $(targets 1) = "$nodes" ]]; }
if ! wait_until 90 all_up; then
  on node01 curl -s http://node01:9090/api/v1/targets | jq -c '.data.activeTargets[] | [.scrapeUrl, .health, .lastError, .lastScrapeDuration]' >&2
  die "Prometheus: all $nodes targets are up"
fi
echo "  ok: Prometheus: all $nodes targets are up"
check "Prometheus and the exporter listen in the cluster's network only" \
  fails_on node01 "ss -Hltn | grep -qE '(\*|0\.0\.0\.0|\[::\]|127\.0\.0\.1):(9090|9100) '"

# NFS: the server's file system on all others.
check "NFS is what is mounted" test "$(on node03 findmnt -n -o FSTYPE,SOURCE /home/shared | tr -s ' ')" = "nfs4 10.20.0.11:/home/shared"
on node02 sudo sh -c "'dd if=/dev/urandom of=/home/shared/blob bs=1M count=4 conv=fsync 2>/dev/null; sha256sum /home/shared/blob'" >"$work/nfs"
check "NFS: written on node02, the same on node03" sh -c "$muster lab ssh node03 -- sha256sum /home/shared/blob | diff - '$work/nfs'"
check "root of a client is squashed there, and mounted nosuid,nodev" sh -c "$muster lab ssh node03 -- stat -c %U /home/shared/blob | grep -qx nobody && $muster lab ssh node03 -- findmnt -n -o OPTIONS /home/shared | grep nosuid | grep -q nodev"
check "exported to the other nodes one by one" sh -c "$muster lab ssh node01 -- sudo exportfs -s | grep -c 'root_squash' | grep -qx $((nodes - 1))"

# Firewall, from another node: ssh and MPI's ports are open, port 9 does not even answer "refused".
port() { on node02 "timeout 3 bash -c '</dev/tcp/10.20.0.13/$1' 2>/dev/null; echo \$?"; }
check "from node02, node03's ssh is open" test "$(port 22)" = 0
check "from node02, node03's port 9 is filtered (no answer, not refused)" test "$(port 9)" = 124
# A published container port is not a way around it.
check "Docker has no rules of its own" fails_on node03 "sudo iptables -S | grep -q DOCKER"

# A firewall that shuts the controller out: node03's own part of the rules drops everything to the controller, and the firewall is
# down, so that muster starts it. The agent's link is really cut; the node must undo it by itself.
on node03 sudo sh -c "'cp /etc/ufw/before.rules /var/tmp/before.rules && sed -i \"s/^# End required lines/-A ufw-before-output -d 10.20.0.1 -j DROP/\" /etc/ufw/before.rules && /lib/ufw/ufw-init force-stop'"
check "the trap is set" on node03 sudo grep -q "'10.20.0.1 -j DROP'" /etc/ufw/before.rules
start=$SECONDS
digest=$($muster plan --limit node03 --force node03 --json | jq -r .digest)
if $muster approve "$digest" >"$work/lockout.log"; then die "a firewall that locks the controller out was kept"; fi
echo "  cut off and back in $((SECONDS - start)) s"
check "the reason says so" sh -c "$muster status --json | jq -r '.nodes[] | select(.name == \"node03\") | .reason' | grep -q 'rolled back'"
check "node03 is reachable again" node_ssh node03 true
check "the rules that cut it off are gone" fails_on node03 "sudo iptables -S | grep -q '10.20.0.1.*DROP'"
on node03 sudo cp /var/tmp/before.rules /etc/ufw/before.rules
$muster up "$work/cluster.yaml" --limit node03 --yes --report "$work/report-again" >"$work/again.log"
check "without the trap node03 is accepted again" test "$(node_state node03)" = accepted
check "and its port 9 is filtered again" test "$(port 9)" = 124

# MooseFS: what was written before is read, verified, while a node is gone.
on node02 sudo sh -c "'dd if=/dev/urandom of=/shared/blob bs=1M count=16 conv=fsync 2>/dev/null; sha256sum /shared/blob'" >"$work/blob"
check "MooseFS: root of a client is squashed there, and mounted nosuid,nodev" sh -c "$muster lab ssh node03 -- stat -c %U /shared/blob | grep -qx nobody && $muster lab ssh node03 -- findmnt -n -o OPTIONS /shared | grep nosuid | grep -q nodev"
lacking() { on node01 mfscli -H 10.20.0.11 -SIN -n -s "'|'" | awk -F'|' '/chunkclass (missing|endangered|undergoal):/ { n += $3; c++ } END { if (c == 3) print n; exit c != 3 }'; }
healthy() { [[ $(lacking) == 0 ]]; }
some_lack() { [[ $(lacking) -gt 0 ]]; }
check "every chunk has its copies" wait_until 120 healthy
# Nine copies are more than there are chunk servers. The master's node asks once a minute; where that takes seconds, as emulated, every five.
# An agent queries the master as soon as it starts; the next time by itself.
told() { $muster status --json | jq -e ".storage[] | select(.engine == \"moosefs\") | $1" >/dev/null; }
on node01 sudo mfssetgoal 9 /shared/blob
check "chunks lack copies" wait_until 300 some_lack
on node01 sudo systemctl restart muster-agent
check "muster status tells of chunks that lack copies" wait_until 400 told '.healthy == false and any(.problems[]; .node == "node01" and (.problem | test("[0-9]+ chunks are (undergoal|endangered)")))'
on node01 sudo mfssetgoal 2 /shared/blob
check "and, without a restart, that all have them again" wait_until 600 told '.healthy == true'
check "as the master says" wait_until 120 healthy
$muster power off "$last" --yes
off() { [[ $(on node01 mfscli -H 10.20.0.11 -SCS -n -s "'|'" | grep -c '^chunk servers:') -eq $((nodes - 1)) ]]; }
check "the master lost $last's chunk server" wait_until 120 off
on node03 sudo sh -c "'echo 3 > /proc/sys/vm/drop_caches'"
check "the volume is read and right without $last" sh -c "$muster lab ssh node03 -- sha256sum /shared/blob | diff - '$work/blob'"
check "and written without it" on node03 sudo sh -c "'dd if=/dev/urandom of=/shared/more bs=1M count=4 conv=fsync 2>/dev/null'"
$muster power on "$last"
on_again() { [[ $(on node01 mfscli -H 10.20.0.11 -SCS -n -s "'|'" | grep -c '^chunk servers:') -eq $nodes ]]; }
check "$last comes back" wait_until 240 on_again

# Drain, then take it away for good.
check "the master of the volume cannot be drained" sh -c "$muster drain node01 --yes; test \$? -eq 4"
online() { $muster status --json | jq -e --arg n "$last" '.nodes[] | select(.name == $n) | .last_seen > (now - 20) * 1000' >/dev/null; }
check "its agent is back" wait_until 120 online
start=$SECONDS
$muster drain "$last" --yes
echo "  the drain took $((SECONDS - start)) s"
check "$last is drained" test "$(node_state "$last")" = drained
check "Slurm gives it no jobs" sh -c "$muster lab ssh node01 -- sinfo -h -n $last -o %T | grep -q drained"
check "no chunk lacks a copy before it goes" healthy
$muster power off "$last" --yes
check "it is gone" wait_until 120 off
check "no chunk lacks a copy after it went" healthy
check "the data is the same" sh -c "$muster lab ssh node02 -- sha256sum /shared/blob | diff - '$work/blob'"
rest=$((nodes - 1))
sed "s/node\[01-0$nodes\]/node[01-0$rest]/; s/, \"52:54:00:20:00:0$nodes\"//" "$work/cluster.yaml" >"$work/fewer.yaml"
$muster up "$work/fewer.yaml" --yes --report "$work/report-fewer" | tail -3
check "the others are accepted without it" test "$(jq -r '[.nodes[] | select(.verdict == "accepted")] | length' "$work/report-fewer/report.json")" = $rest
check "Slurm knows $rest nodes" sh -c "test \$($muster lab ssh node01 -- sinfo -h -N | wc -l) = $rest"
$muster node rm "$last"
check "muster knows $rest" test "$($muster status --json | jq '.nodes | length')" = $rest
