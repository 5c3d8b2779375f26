#!/usr/bin/env bash
# RDMA in software between three machines with the full kernel: by the hosts' perftest and by the carried one; what is gone is named
# stands on: agent/checks/accept* agent/steps/network/rdma_ports* agent/steps/system/kernel_module*
# stands on: controller/engines/local_engine* controller/plan/acceptance_steps* controller/power/redfish*
# stands on: controller/report kernels/common/connection* kernels/counters/counters* kernels/rdma playbooks/acceptance/lab.yaml playbooks/base.yaml
# stands on: playbooks/firewall.yaml playbooks/interconnect.yaml playbooks/mpi.yaml playbooks/ssh.yaml playbooks/storage-local.yaml
# stands on: controller/image/programs* scripts/perftest.sh
source "$(dirname "$0")/lib.sh"
# The programs of the build, and beside them the perftest that the archive carries, as scripts/release.sh fetches it.
mkdir -p "$work/tree/build"
for entry in *; do [[ $entry == build* ]] || ln -s "$PWD/$entry" "$work/tree/$entry"; done
for entry in muster musterd muster-agent muster-accept muster-accept-nvml muster-mpi-check; do cp -a "${muster%/*}/$entry" "$work/tree/build/"; done
scripts/perftest.sh "$work/tree/build/perftest"
muster=$work/tree/build/muster
# No acceptance while installing, no shared storage: this test has profiles of its own below.
small_spec 3 's/storage-local \]/storage-local, mpi, interconnect ]/' 's/kernel: cloud/kernel: full/' 's/^lab:/vars: { soft_roce: "yes" }\nlab:/' >"$work/cluster.yaml"
lab_up
$muster up "$work/cluster.yaml" --yes --report "$work/report" >"$work/up.log" || { tail -n 40 "$work/up.log"; die "bring-up"; }
check "each has an active RDMA port" sh -c "for n in node01 node02 node03; do $muster lab ssh \$n -- cat /sys/class/infiniband/rxe0/ports/1/state || exit 1; done | grep -c ACTIVE | grep -qx 3"
check "it is soft-RoCE of the full kernel" node_ssh node01 grep -q rdma_rxe /proc/modules

verdict() { jq -r --arg n "$1" '.nodes[] | select(.name == $n) | .verdict' "$report"; }
reason() { jq -r --arg n "$1" '.nodes[] | select(.name == $n) | .reason' "$report"; }
has() { [[ $1 == *"$2"* ]]; }
accept() { $muster accept --profile lab --yes --report "$1"; }
packets() { node_ssh "$1" cat /sys/class/infiniband/rxe0/ports/1/hw_counters/sent_pkts; }
rdma() { jq -c '.nodes[] | .name as $n | .checks[] | select(.name | startswith("rdma/")) | [$n, .name, .subject, .verdict, .measured_text, .reason]' "$report"; }

# Measured by perftest, in both directions and between all pairs, and the devices' own counters saw the packets.
before=$(packets node02)
node_ssh node01 sudo /usr/lib/muster/muster-accept counters --save /run/rdma-test.json >/dev/null
report=$work/healthy/report.json
expect_exit 0 accept "$work/healthy"
rdma
for metric in send_gbps receive_gbps latency_us; do
  check "$metric of all six ends" test "$(jq --arg m "rdma/$metric" '[.nodes[].checks[] | select(.name == $m and .verdict == "pass" and .measured > 0 and (.subject | endswith(", rail 0")))] | length' "$report")" = 6
done
data='[.nodes[].checks[] | select(.name == "rdma/data") | .evidence.detail]'
check "by device, over RoCE v2, with the MTU that perftest agreed on" jq -e "$data | length == 6 and all(.device == \"rxe0\" and .peer_device == \"rxe0\" and .gid_index >= 0 and .mtu >= 1024)" "$report"
check "by the hosts' own perftest" jq -e "$data | all(.perftest | endswith(\" of this host\"))" "$report"
check "why GPU memory was not measured is said" jq -e "$data | all(.gpu_direct | startswith(\"not measured: \"))" "$report"
after=$(packets node02)
echo "  rxe0 of node02 sent $((after - before)) packets"
check "the packets went over RDMA" test $((after - before)) -gt 10000
node_ssh node01 sudo /usr/lib/muster/muster-accept counters --since /run/rdma-test.json >"$work/counters.json"
jq -c '.metrics, .detail.moved' "$work/counters.json"
check "port errors are rates" jq -e '.metrics.rdma_retransmissions.unit == "/h" and .metrics.rdma_link_downs.value == 0' "$work/counters.json"
check "nothing of it still serves" fails_on node01 "pgrep -x ib_write_bw"

# Two nodes without perftest of their own are measured with the one that muster carries, and the third one by the same.
for node in node01 node02; do node_ssh $node sudo dpkg --purge --force-depends perftest >/dev/null; done
report=$work/carried/report.json
expect_exit 0 accept "$work/carried"
rdma
check "all by the carried perftest" jq -e "$data | length == 6 and all(.perftest | endswith(\" carried by muster\")) and all(.mtu >= 1024)" "$report"
check "nothing of it serves on" fails_on node01 "pgrep ib_write_bw"
# What it loads is the host's: without it RDMA is not measured there, and the report says what to install.
# Debian's fio loads it, too: here it has one of its own, or local storage would fail first.
libibverbs=$(node_ssh node02 readlink -f /usr/lib/x86_64-linux-gnu/libibverbs.so.1)
node_ssh node02 "sudo mkdir /opt/fio && sudo cp $libibverbs /opt/fio/libibverbs.so.1"
node_ssh node02 'printf "#!/bin/sh\nLD_LIBRARY_PATH=/opt/fio exec /usr/bin/fio \"\$@\"\n" | sudo tee /usr/local/bin/fio >/dev/null && sudo chmod 755 /usr/local/bin/fio'
node_ssh node02 sudo mv "$libibverbs" "$libibverbs.away"
report=$work/without/report.json
expect_exit 3 accept "$work/without"
rdma
check "node02 is quarantined" test "$(verdict node02)" = quarantined
check "the library is named" has "$(reason node02)" "libibverbs.so.1"
check "and the title counts the node" jq -e '.title | test("RDMA not measured on 1 node")' "$report"
for node in node01 node03; do check "$node is accepted" test "$(verdict "$node")" = accepted; done
node_ssh node02 "sudo mv $libibverbs.away $libibverbs && sudo rm -r /opt/fio /usr/local/bin/fio"

# A device that is not there: its node reports it, and no other is faulty.
node_ssh node02 sudo rdma link delete rxe0
report=$work/gone/report.json
expect_exit 3 accept "$work/gone"
rdma
check "node02 is quarantined" test "$(verdict node02)" = quarantined
check "because it has no RDMA device" has "$(reason node02)" "no RDMA device"
for node in node01 node03; do check "$node is accepted" test "$(verdict "$node")" = accepted; done

# One that goes away while it is measured.
node_ssh node02 sudo systemctl restart muster-soft-roce
accept "$work/broken" >"$work/broken.log" 2>&1 &
accepting=$!
measuring() { node_ssh node02 pgrep -f "'ib_write_bw.*10[.]20'" >/dev/null; }
until measuring; do kill -0 "$accepting" 2>/dev/null || { cat "$work/broken.log"; die "accept ended before node02 measured"; }; done
node_ssh node02 sudo rdma link delete rxe0
got=0
wait "$accepting" || got=$?
report=$work/broken/report.json
rdma
check "it is not accepted (exit $got)" test "$got" = 3
check "node02 is quarantined" test "$(verdict node02)" = quarantined
echo "  reason: $(reason node02)"
for node in node01 node03; do check "$node is accepted" test "$(verdict "$node")" = accepted; done
