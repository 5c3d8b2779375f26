#!/usr/bin/env bash
# two machines with rails (lab: rails): addresses, MTU, routes by source, firewall; what is changed by hand is put right, a port that is gone is named
# stands on: agent/steps/system/{kernel_command_line,reboot,sys_values}* controller/plan/interconnect* controller/spec/reader/reader_rails*
source "$(dirname "$0")/lib.sh"
source tests/e2e/labs/rails.sh
lab_spec "base, ssh, firewall, networks, storage-local, tuning" \
  's/^roles:/firewall:\n  - { from: 192.0.2.0\/24, port: 4711, comment: portal }\nroles:/' >"$work/cluster.yaml"
shared_lab rails

rail_port() { node_ssh "$1" ip -o -4 address show to "10.100.$2.1${1#node0}" | awk '{ print $2; exit }'; }
for node in node01 node02; do
  for rail in 0 1; do
    address=10.100.$rail.1${node#node0}
    port=$(rail_port "$node" "$rail")
    check "$node has $address on $port, MTU 9000" sh -c "$muster lab ssh $node -- ip -o link show $port | grep -q 'mtu 9000' && $muster lab ssh $node -- ip -o -4 address show $port | grep -q '$address/24'"
    check "what has this address leaves through $port" sh -c "$muster lab ssh $node -- ip route get 10.100.$rail.99 from $address | grep -q 'dev $port'"
    check "or not at all" fails_on "$node" "ip route get 10.20.0.1 from $address >/dev/null 2>&1"
  done
done
for rail in 0 1; do
  check "rail $rail carries 9000 bytes in one piece" node_ssh node01 sudo ping -q -c 3 -W 5 -M "do" -s 8972 -I "10.100.$rail.11" "10.100.$rail.12"
done
check "the firewall lets a rail in to its own address" sh -c "$muster lab ssh node01 -- sudo iptables -S ufw-user-input | grep -q -- '-s 10.100.1.0/24 -d 10.100.1.11/32 -j ACCEPT'"
check "and what the spec lets in, from there and to that port alone" sh -c \
  "$muster lab ssh node01 -- sudo iptables -S ufw-user-input >'$work/rules' && grep -e '--dport 4711 ' '$work/rules' | grep -q -e '-s 192.0.2.0/24 ' && ! grep -e '--dport 4711 ' '$work/rules' | grep -qv -e '-s 192.0.2.0/24 '"
check "NUMA balancing is off" test "$(node_ssh node01 cat /proc/sys/kernel/numa_balancing)" = 0   # as in any guest with one NUMA node: see below
check "huge pages only where a program asks" node_ssh node01 grep -qF "'[madvise]'" /sys/kernel/mm/transparent_hugepage/enabled
check "the kernel has iommu=pt" node_ssh node01 grep -qw iommu=pt /proc/cmdline

# Changed by hand and in the spec: the next run compares with the kernel.
port=$(rail_port node02 1) third=$(rail_port node02 2)
node_ssh node02 sudo ip address flush dev "$port"
node_ssh node02 sudo sh -c "'echo 1 >/proc/sys/kernel/numa_balancing; echo always >/sys/kernel/mm/transparent_hugepage/enabled'"
check "NUMA balancing is on" test "$(node_ssh node02 cat /proc/sys/kernel/numa_balancing)" = 1
sed -i 's/mtu: 9000/mtu: 8000/' "$work/cluster.yaml"
$muster up "$work/cluster.yaml" --yes >"$work/again.log" || { tail -n 40 "$work/again.log"; die "second run"; }
check "the address is back" test "$(rail_port node02 1)" = "$port"
check "NUMA balancing is off again" test "$(node_ssh node02 cat /proc/sys/kernel/numa_balancing)" = 0
check "and huge pages only where a program asks" node_ssh node02 grep -qF "'[madvise]'" /sys/kernel/mm/transparent_hugepage/enabled
check "with the new MTU" sh -c "$muster lab ssh node02 -- ip -o link show $port | grep -q 'mtu 8000'"

# A port that is not there.
sed -i 's/mtu: 8000/mtu: 8000, ports: [ "0000:99:00.0", '"$port, $third"' ]/' "$work/cluster.yaml"
got=0
$muster up "$work/cluster.yaml" --yes >"$work/gone.log" 2>&1 || got=$?
check "the run fails (exit $got)" test "$got" != 0
check "rail and port are named" sh -c "$muster why node02 | grep -q 'rail 0 on node02: port 0000:99:00.0 not found'"

# PFC on ports that have no DCB, as virtio's: refused by name, and nothing of it stays.
sed -i 's/mtu: 8000, ports: \[[^]]*\]/mtu: 8000, qos: { pfc: [ 3 ] }/' "$work/cluster.yaml"
check "the spec with priorities is valid" $muster spec check "$work/cluster.yaml"
got=0
$muster up "$work/cluster.yaml" --yes >"$work/qos.log" 2>&1 || got=$?
check "no node is accepted (exit $got)" test "$got" = 1
for node in node01 node02; do
  check "$node is refused, and the rail, its driver and DCB are named" \
    node_is "$node" '.state == "quarantined" and (.reason | test("rail 0 on '"$node"': .*driver virtio_net. does not support DCB"))'
done
check "no unit of it is left for the next boot" fails_on node01 "test -e /etc/systemd/system/muster-rail-qos.service"
check "the rails are as they were" test "$(rail_port node02 1)" = "$port"
