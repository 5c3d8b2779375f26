#!/usr/bin/env bash
# two machines with three rails of RoCE (soft-RoCE on each): RoCE v2 GIDs, MTU, nccl.conf, and perftest's traffic on the rail it was given and no other
# stands on: agent/steps/system/kernel_module* controller/plan/interconnect* controller/spec/reader/reader_rails*
source "$(dirname "$0")/lib.sh"
source tests/e2e/labs/rails.sh
lab_spec "base, ssh, firewall, networks, storage-local, mpi, interconnect" 's/^lab:/vars: { soft_roce: "yes" }\nlab:/' >"$work/cluster.yaml"
shared_lab rails

address() { echo "10.100.$2.1${1#node0}"; }  # address NODE RAIL
port() { node_ssh "$1" ip -o -4 address show to "$(address "$1" "$2")" | awk '{ print $2; exit }'; }
lies_in() { python3 -c 'import ipaddress, sys; sys.exit(ipaddress.ip_address(sys.argv[1]) not in ipaddress.ip_network(sys.argv[2]))' "$1" "$2"; }
setting() { node_ssh "$1" sed -n "s/^$2=//p" /etc/nccl.conf; }
gid() {  # gid NODE RAIL: number of the RoCE v2 GID that is this rail's address
  local hex a b c d
  IFS=. read -r a b c d < <(address "$1" "$2")
  hex=$(printf '0000:0000:0000:0000:0000:ffff:%02x%02x:%02x%02x' "$a" "$b" "$c" "$d")
  node_ssh "$1" "cd /sys/class/infiniband/rxe$2/ports/1 && for i in 0 1 2 3 4 5 6 7; do
    [ \"\$(cat gids/\$i 2>/dev/null)\" = $hex ] && [ \"\$(cat gid_attrs/types/\$i 2>/dev/null)\" = 'RoCE v2' ] && echo \$i && break; done; true"
}
for node in node01 node02; do
  for rail in 0 1 2; do
    dev=$(port "$node" "$rail")
    [[ -n $dev ]] || die "$node has no port for rail $rail"
    check "$node, rail $rail: rxe$rail is on $dev and active" sh -c "$muster lab ssh $node -- rdma link show rxe$rail/1 | grep 'state ACTIVE' | grep -q 'netdev $dev'"
    check "a RoCE v2 GID of its address" test -n "$(gid "$node" "$rail")"
    check "MTU 9000" test "$(node_ssh "$node" cat "/sys/class/net/$dev/mtu")" = 9000
    check "4096 bytes in RDMA's own packets, the most there is" sh -c "$muster lab ssh $node -- ibv_devinfo -d rxe$rail | grep active_mtu | grep -q 4096"
  done
  check "$node: NCCL is given all ports" test "$(setting "$node" NCCL_IB_HCA)" = "=rxe0:1,rxe1:1,rxe2:1"
  # A GID's number depends on the order in which addresses came: NCCL is given the network in which to find its own.
  check "no number of a GID" test -z "$(setting "$node" NCCL_IB_GID_INDEX)"
  check "RoCE v2 over IPv4" test "$(setting "$node" NCCL_IB_ROCE_VERSION_NUM)/$(setting "$node" NCCL_IB_ADDR_FAMILY)" = 2/AF_INET
  for rail in 0 1 2; do
    check "rail $rail's address is in the range that NCCL looks in" lies_in "$(address "$node" $rail)" "$(setting "$node" NCCL_IB_ADDR_RANGE)"
  done
  check "and the provisioning address is not" test "$(lies_in "10.20.0.1${node#node0}" "$(setting "$node" NCCL_IB_ADDR_RANGE)" && echo in || echo out)" = out
  # With RDMA, sockets only carry the start of a job: over the network that all nodes have.
  first=$(node_ssh "$node" ip -o -4 address show to "10.20.0.1${node#node0}" | awk '{ print $2; exit }')
  check "and the provisioning port for sockets" test -n "$first" -a "$(setting "$node" NCCL_SOCKET_IFNAME)" = "=$first"
done

# perftest along one rail: its ports count the bytes, another rail's do not. Not along the third: the driver of node02's adapter there reads the
# counters every two seconds only.
bytes() { node_ssh "$1" cat "/sys/class/net/$(port "$1" "$2")/statistics/$3"; }
along() {  # along RAIL: 32 MiB from node01 to node02; -u: an emulated machine may take a second to confirm
  local rail=$1 index
  index=$(gid node02 "$rail")
  node_ssh node02 sudo timeout 120 ib_write_bw -d "rxe$rail" -x "$index" -F -u 18 -s 65536 -n 512 >"$work/server.log" 2>&1 &
  local server=$!
  wait_until 60 node_ssh node02 sh -c "'ss -Hltn sport = :18515 | grep -q .'" || die "perftest does not listen: $(cat "$work/server.log")"
  node_ssh node01 sudo timeout 120 ib_write_bw -d "rxe$rail" -x "$(gid node01 "$rail")" -F -u 18 -s 65536 -n 512 "$(address node02 "$rail")" >"$work/client.log" 2>&1 ||
    { cat "$work/client.log" "$work/server.log"; die "perftest on rail $rail"; }
  wait "$server" || die "perftest's other end on rail $rail: $(cat "$work/server.log")"
}
moved=$((512 * 65536))
for rail in 0 1; do
  other=$((1 - rail))
  sent=$(bytes node01 "$rail" tx_bytes) got=$(bytes node02 "$rail" rx_bytes) else_sent=$(bytes node01 "$other" tx_bytes) else_got=$(bytes node02 "$other" rx_bytes)
  along "$rail"
  sent=$(($(bytes node01 "$rail" tx_bytes) - sent)) got=$(($(bytes node02 "$rail" rx_bytes) - got))
  else_sent=$(($(bytes node01 "$other" tx_bytes) - else_sent)) else_got=$(($(bytes node02 "$other" rx_bytes) - else_got))
  grep -E '^ *65536' "$work/client.log" || echo "  perftest printed no figure: its clock could not be calibrated"
  check "rail $rail carried it ($sent sent, $got received)" test $((sent >= moved && got >= moved)) = 1
  check "rail $other did not ($else_sent, $else_got)" test $((else_sent < moved / 100 && else_got < moved / 100)) = 1
done

# A rail without RDMA: the step says which one lacks it, and NCCL is not left with half a truth.
node_ssh node02 sudo rdma link delete rxe1
got=0
$muster approve "$($muster plan --limit node02 --force node02 --json | jq -r .digest)" >"$work/gone.log" 2>&1 || got=$?
check "node02 is out (exit $got)" test "$got" != 0
check "for rail 1" node_is node02 '.state == "quarantined" and (.reason | contains("rail 1 on node02"))'
