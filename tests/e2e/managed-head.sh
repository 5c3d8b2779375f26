#!/usr/bin/env bash
# the machine that musterd runs on is a node of its own cluster: configured like the other one, which it goes on booting through its own firewall; never re-imaged, wiped or switched off
# stands on: agent/joining/adopt* agent/steps/system agent/steps/{accounts,tcp}* cli/{adopt_host,adopt_verb}*
# stands on: controller/api/power_api* controller/bringup/{bringup,own_machine_here}* controller/engines/local_engine*
# stands on: controller/plan/{network_services,own_machine}* controller/power/redfish* controller/power/service/power_service* controller/{boot,ssh}
# stands on: playbooks/base.yaml playbooks/firewall.yaml playbooks/ssh.yaml playbooks/storage-local.yaml systemd
# beside the record: agent/steps/network/{probe,ufw}*
source "$(dirname "$0")/lib.sh"
debs=$work/debs
cpack --config "${MUSTER_BUILD:-build}/CPackConfig.cmake" -B "$debs" >"$work/cpack.log" || { cat "$work/cpack.log"; die "cpack"; }
deb() { echo "$debs"/"$1"_*.deb; }

# node01 becomes the head node of the cluster, with more memory, room, and a second drive; node02 stays bare.
cat >"$work/cluster.yaml" <<'YAML'
cluster: managed-head
network:
  provisioning: { cidr: 10.20.0.0/24, dhcp: managed }
  controller: 10.20.0.1
  bmc:          { cidr: 10.20.1.0/24 }
users:
  ops: { keys: [ "ssh-ed25519 LAB_SSH_KEY lab" ], sudo: true }
images:
  cpu: { recipe: debian-12, kernel: cloud, bake: [ base, ssh, firewall, storage-local ] }
nodes:
  - name: node[01-02]
    role: cpu
    power: { driver: redfish, address: "10.20.1.1{n}", secret: bmc }
    mac: [ "52:54:00:20:00:01", "52:54:00:20:00:02" ]
    image: cpu
    disks:
      os: { match: { serial: "LABOS*", count: 1 }, policy: format-if-blank }
roles:
  cpu: { playbooks: [ base, ssh ] }
limits: { netboot: 10 min, boot: 10 min }
lab:
  memory_mib: 2048
  smp: 1
  drives:
    - { name: os, size: 12 GiB, serial_prefix: LABOS }
    - { name: fast, size: 2 GiB, serial_prefix: LABFAST }
  nodes:
    node01: { memory_mib: 3072, smp: 2 }
YAML
$muster lab up "$work/cluster.yaml"
kernel_options=$(lab_kernel_options)
sed -e 's/node\[01-02\]/node[01-01]/; s/, "52:54:00:20:00:02" \]/ ]/' -e '/^lab:/,$d' "$MUSTER_LAB_DIR/cluster.yaml" >"$work/first.yaml"
$muster up "$work/first.yaml" --yes --report "$work/report" >"$work/first.log" 2>&1 || { cat "$work/first.log"; die "node01"; }
$muster image export cpu "$work/cpu.image"

# The lab's controller goes: two DHCP servers on one network would answer the same machine.
serves_dhcp() { [[ $($muster lab exec -- ss -Hlun 'sport = :67') == *:67* ]]; }
pid=$(jq -r .pid "$MUSTER_LAB_DIR/musterd.pid")
kill "$pid"
gone() { ! kill -0 "$pid" 2>/dev/null && ! serves_dhcp; }
check "the lab's controller ends, and nothing serves DHCP any more" wait_until 20 gone

# Runs a script as root in the guest; encoded, because two shells read it on the way.
guest() { node_ssh node01 "sudo bash -euc \"\$(echo $(base64 -w0 <<<"$1") | base64 -d)\"" </dev/null; }
into_guest() { node_ssh node01 sudo sh -c "'cat > $2'" <"$1"; }
# It becomes a machine that muster never made: no agent, no identity. Its second drive holds something.
guest 'systemctl disable --now muster-agent.service; rm -rf /state/muster /var/lib/muster /etc/muster /usr/sbin/muster-agent
  rm -f /lib/systemd/system/muster-agent.service /etc/systemd/system/muster-agent.service; systemctl daemon-reload
  echo "127.0.0.1 localhost stranger" >/etc/hosts; hostname stranger; echo stranger >/etc/hostname
  mkfs.ext4 -q -F -L PRECIOUS /dev/disk/by-id/nvme-*LABFAST0101; mkdir -p /var/tmp/debs; ip route add 10.20.1.0/24 via 10.20.0.1'
for p in muster muster-controller; do into_guest "$(deb $p)" /var/tmp/debs/$p.deb; done
into_guest "$work/cpu.image" /root/cpu.image
into_guest "$MUSTER_LAB_DIR/ssh/id_ed25519" /root/key
guest 'chmod 600 /root/key
  echo "Acquire::http::Proxy \"http://10.20.0.1:3142\";" >/etc/apt/apt.conf.d/proxy
  export DEBIAN_FRONTEND=noninteractive
  apt-get -qq update
  apt-get -qq install -y --no-install-recommends /var/tmp/debs/muster.deb /var/tmp/debs/muster-controller.deb' >"$work/apt.log" 2>&1 ||
  { cat "$work/apt.log"; die "apt"; }
into_guest <(echo "MUSTER_KERNEL_OPTIONS=$kernel_options") /root/lab.env
guest 'cat /root/lab.env >>/etc/muster/musterd.env; systemctl restart musterd
  muster image import /root/cpu.image >/dev/null; rm /root/cpu.image'
into_guest <(tr -d '\n' <"$MUSTER_LAB_DIR/bmc-secret") /run/bmc
guest 'muster secret set bmc </run/bmc; rm /run/bmc'
pin=$(guest 'ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub' | cut -d' ' -f2)
boot_of() { guest 'cat /proc/sys/kernel/random/boot_id'; }
boot=$(boot_of)

# The head's own cluster: itself, adopted, with the BMC that it has; and node02.
{
  sed -e 's/node\[01-02\]/node[02-02]/; s/mac: .*/mac: [ "52:54:00:20:00:02" ]/; s/controller: .*/controller: 10.20.0.11/' \
    -e 's/\[ base, ssh \]/[ base, ssh, firewall ]/' -e '/^roles:/,$d' "$MUSTER_LAB_DIR/cluster.yaml"
  cat <<YAML
  - name: head01
    role: head
    adopt: { host: 10.20.0.11, user: ops, host_key: "$pin" }
    power: { driver: redfish, address: 10.20.1.11, secret: bmc }
roles:
  cpu:  { playbooks: [ base, ssh, firewall ] }
  head: { playbooks: [ base, ssh, firewall ], leads: [ base ] }
sysctls: { vm.swappiness: 41 }
limits: { netboot: 10 min, boot: 10 min }
YAML
} >"$work/own.yaml"
into_guest "$work/own.yaml" /root/cluster.yaml
guest 'muster spec check /root/cluster.yaml'
guest 'cd /root && muster up cluster.yaml --limit node02 --yes --report report' >"$work/node02.log" 2>&1 || { cat "$work/node02.log"; die "node02"; }
start=$SECONDS
guest 'cd /root && muster node add head01 --adopt 10.20.0.11 --key /root/key --yes --report report-head' >"$work/adopt.log" 2>&1 ||
  { cat "$work/adopt.log"; die "adopting the head node"; }
echo "  adopting itself took $((SECONDS - start)) s"

state() { guest "muster status --json" | jq -e --arg n "$1" --arg s "$2" 'any(.nodes[]; .name == $n and .state == $s)' >/dev/null; }
check "head01 is accepted" state head01 accepted
check "its agent says that it is adopted" sh -c "$muster lab ssh node01 -- sudo muster status --json | jq -e 'any(.nodes[]; .name == \"head01\" and .mode == \"adopted\")' >/dev/null"
check "it has the cluster's name and hosts" guest 'test "$(hostname)" = head01 && grep -q "10.20.0.12.*node02" /etc/hosts'
check "and its kernel parameters" guest 'test "$(cat /proc/sys/vm/swappiness)" = 41'
check "the firewall is on, and lets in what booting machines ask for" guest 'iptables -S ufw-user-input >/run/rules; grep -q -- "--dport 67 " /run/rules && grep -q -- "--dport 69 " /run/rules'
check "controller and agent share a folder" guest 'test -s /var/lib/muster/muster.db && test -s /var/lib/muster/agent.json'
check "it is the clock of the others" node_ssh node02 grep -q 10.20.0.11 /etc/chrony/sources.d/muster.sources
check "it was not booted" test "$(boot_of)" = "$boot"
# node02 lets its controller in everywhere: seen from there, a firewall cannot be told from none. Seen from a stranger it can.
proves_nothing() {
  guest 'cat /root/report-head/report.json' |
    jq -e '[.nodes[] | select(.name == "head01") | .steps[] | select(.name == "firewall/the rest is closed") | .status] == ["not_applicable"]' >/dev/null
}
check "it says that it cannot prove its neighbour's firewall" proves_nothing
answer() {  # answer ADDRESS PORT: 0 open, 124 none
  local got=0
  $muster lab exec -- timeout 3 bash -c "exec 3<>/dev/tcp/$1/$2" 2>/dev/null || got=$?
  echo "$got"
}
for node in 10.20.0.11 10.20.0.12; do
  check "ssh of $node is open to a stranger" test "$(answer "$node" 22)" = 0
  check "the rest of $node is closed to one" test "$(answer "$node" 9)" = 124
done

# Never re-imaged, wiped or switched off, by whatever name, forced or not.
refused() {  # refused DESCRIPTION COMMAND: it fails, and says why
  if guest "cd /root && $2" >"$work/refused.log" 2>&1 </dev/null; then cat "$work/refused.log"; die "carried out: $2"; fi
  grep -q own-machine "$work/refused.log" || { cat "$work/refused.log"; die "no own-machine in: $2"; }
  check "$1: refused as own-machine, and it goes on" test "$(boot_of)" = "$boot"
}
refused "re-imaged" 'muster reimage head01 --yes'
refused "re-imaged, forced" 'muster plan --kind reimage --limit head01 --force head01'
refused "admitted" 'muster plan --kind admit --limit head01'
refused "switched off" 'muster power off head01 --yes'
refused "cycled" 'muster power cycle head01 --yes'
# As a node that is installed, over its own name or over another one with its BMC.
sed -e '/adopt:/d; s/\(power: .*10\.20\.1\.11.*\)/\1\n    mac: "52:54:00:20:00:01"\n    image: cpu\n    address: 10.20.0.50\n    disks: { os: { match: { serial: "LABOS*", count: 1 }, policy: format } }/' "$work/own.yaml" >"$work/installed.yaml"
into_guest "$work/installed.yaml" /root/installed.yaml
refused "installed" 'muster up installed.yaml --limit head01 --yes'
sed -e '/10\.20\.1\.11,/d' -e 's/^roles:/  - name: other\n    role: cpu\n    power: { driver: redfish, address: 10.20.1.11, secret: bmc }\n    mac: "52:54:00:20:00:77"\n    image: cpu\n    disks: { os: { match: { serial: "LABOS*", count: 1 } } }\nroles:/' \
  "$work/own.yaml" >"$work/other.yaml"
into_guest "$work/other.yaml" /root/other.yaml
guest 'cd /root && muster up other.yaml --limit head01 --yes' >"$work/other.log" 2>&1 || { cat "$work/other.log"; die "a spec with another node"; }
refused "switched off by another node's name" 'muster power off other --yes'
# A drive of it that holds something, under a policy that would format it on any other machine.
sed -e 's/^\(    power: .*10\.20\.1\.11.*\)/\1\n    disks: { fast: { match: { serial: "LABFAST*", count: 1 }, policy: format } }/' \
  -e 's/head: { playbooks: \[ base, ssh, firewall \]/head: { playbooks: [ base, ssh, firewall, storage-local ]/' \
  -e 's/^roles:/storage:\n  scratch: { engine: local, disks: fast, level: raid0, fs: xfs, mount: \/scratch }\nroles:/' "$work/own.yaml" >"$work/wiped.yaml"
into_guest "$work/wiped.yaml" /root/wiped.yaml
refused "a drive wiped" 'muster up wiped.yaml --limit head01 --yes'
check "its file system is there" guest 'blkid /dev/disk/by-id/nvme-*LABFAST0101 | grep -q PRECIOUS'

# It goes on as the controller: a changed spec reaches both, a restart loses nothing, node02 boots through the head's firewall.
sed 's/vm.swappiness: 41/vm.swappiness: 42/' "$work/own.yaml" >"$work/changed.yaml"
into_guest "$work/changed.yaml" /root/cluster.yaml
guest 'cd /root && muster up cluster.yaml --yes --report report2' >"$work/changed.log" 2>&1 || { cat "$work/changed.log"; die "the changed spec"; }
for node in node01 node02; do check "$node has the new parameter" test "$(node_ssh "$node" cat /proc/sys/vm/swappiness)" = 42; done
guest 'systemctl restart musterd muster-agent'
answers() { guest 'muster status --json' 2>/dev/null | jq -e '(.nodes | length) == 2 and all(.nodes[]; has("silent_since") | not)' >/dev/null; }
check "after a restart of controller and agent no node is silent" wait_until 120 answers
guest 'cd /root && muster up --yes --report report3' >"$work/nothing.log" 2>&1 || { cat "$work/nothing.log"; die "up again"; }
check "there is nothing to do" grep -q "nothing changed" "$work/nothing.log"
# In place it would not boot from the network. Its firmware names whose script it got.
netboots() { grep -ac 'http://10\.20\.0\.11:7480/boot\.ipxe\.\.\. ok' "$MUSTER_LAB_DIR/nodes/node02/console.log" || true; }
booted=$(netboots)
start=$SECONDS
guest 'cd /root && muster reimage node02 --through-ram --yes --report report4' >"$work/reimage.log" 2>&1 || { cat "$work/reimage.log"; die "re-imaging node02"; }
echo "  re-imaging node02 took $((SECONDS - start)) s"
check "node02 booted from the network, which the head's firewall let it do" test "$(netboots)" -gt "$booted"
check "node02 is accepted" state node02 accepted
check "the head node was never booted" test "$(boot_of)" = "$boot"
