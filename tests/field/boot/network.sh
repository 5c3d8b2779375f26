# shellcheck shell=bash
# Sourced by the scripts of this area: a provisioning network in the script's own namespaces, with musterd at one end ("ctrl", 10.20.0.1) and
# machines at the other ("vm").
for tool in dnsmasq ip curl; do command -v $tool >/dev/null || { echo "no $tool: apt-get install dnsmasq-base iproute2 curl"; exit 77; }; done
[[ -e /usr/lib/ipxe/snponly.efi ]] || { echo "no network boot loader: apt-get install ipxe"; exit 77; }
ip link set lo up
ip link add ctrl type veth peer name vm
ip addr add 10.20.0.1/24 dev ctrl
ip link set ctrl up
ip link set vm up
musterd() {
  "$BUILD/musterd" --state "$WORK/state" --socket "$WORK/socket" --listen 10.20.0.1 >>"$WORK/log" 2>&1 &
  controller=$!
  for _ in $(seq 100); do curl -sf --unix-socket "$WORK/socket" http://x/v1/specs >/dev/null && return; sleep 0.1; done
  cat "$WORK/log"; exit 1
}
spec() {  # FILE: the spec from now on; returns when DHCP follows it
  local before; before=$(cat "$WORK/state/run/dnsmasq.pid" 2>/dev/null || true)
  curl -sf --unix-socket "$WORK/socket" -X PUT --data-binary @"$1" http://x/v1/spec >/dev/null || { echo "the spec was refused"; exit 1; }
  for _ in $(seq 100); do
    local now; now=$(cat "$WORK/state/run/dnsmasq.pid" 2>/dev/null || true)
    [[ -n $now && $now != "$before" && -d /proc/$now ]] && return
    sleep 0.1
  done
  echo "dnsmasq did not follow the spec"; cat "$WORK/log"; exit 1
}
client() { python3 "$CASE/../dhcp_client.py" vm "$@"; }
expect() {  # WHAT WANTED GOT
  [[ $2 == "$3" ]] || { echo "$1: expected '$2', got '$3'"; cat "$WORK/state/run/dnsmasq.log" 2>/dev/null | tail -5; exit 1; }
  echo "$1: $3"
}
nodes() {  # MAC-OF-node01 MAC-OF-node02 [an adopted host besides]
  cat <<END
cluster: gaggle
network: { provisioning: { cidr: 10.20.0.0/24, dhcp: managed }, bmc: { cidr: 10.20.1.0/24 } }
images: { node: { recipe: debian-12, kernel: cloud } }
nodes:
  - { name: node01, role: cpu, power: { driver: redfish, address: 10.20.1.11, secret: bmc }, mac: "$1", address: 10.20.0.11, image: node, disks: { os: { match: { serial: A1 }, policy: format-if-blank } } }
  - { name: node02, role: cpu, power: { driver: redfish, address: 10.20.1.12, secret: bmc }, mac: "$2", address: 10.20.0.12, image: node, disks: { os: { match: { serial: A2 }, policy: format-if-blank } } }
${3:-}
roles: { cpu: { playbooks: [ base ] } }
END
}
