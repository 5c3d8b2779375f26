#!/usr/bin/env bash
# a host with what Ubuntu's servers have (ssh.socket, netplan, cloud-init, needrestart, unattended-upgrades, timesyncd) is adopted twice and restarted: name, hosts, sshd, network, time stay
# These are Debian 12's packages of that, set as Ubuntu sets them; Ubuntu itself is not run.
# stands on: agent/joining agent/steps/{files,network,packages,services,system} controller/engines/local_engine* controller/power/redfish*
# stands on: controller/ssh images/debian-12.yaml playbooks/base.yaml playbooks/firewall.yaml playbooks/ssh.yaml playbooks/storage-local.yaml
# stands on: tests/e2e/hosts
source "$(dirname "$0")/lib.sh"
each_login_new   # logins are counted, and the account that logs in changes
source tests/e2e/hosts/stock.sh
echo "Debian's packages, set as Ubuntu sets them; Ubuntu itself was not run"
small_spec 2 >"$work/cluster.yaml"
small_spec 1 >"$work/one.yaml"
stage "a lab"
lab_up

site_packages=${site_packages/,chrony/,systemd-timesyncd},netplan.io,cloud-init,needrestart,unattended-upgrades
owner_changes() {  # owner_changes ROOT ADDRESS MAC
  local seed=$1/var/lib/cloud/seed/nocloud
  rm "$1/etc/systemd/network/10-site.network"
  mkdir -p "$1/etc/netplan" "$seed"
  cat >"$1/etc/netplan/50-site.yaml" <<YAML
network:
  version: 2
  renderer: networkd
  ethernets:
    site: { match: { macaddress: "$3" }, addresses: [ $2/24 ], routes: [ { to: default, via: 10.20.0.1 } ] }
YAML
  chmod 600 "$1/etc/netplan/50-site.yaml"
  # Its names come from what the machine was ordered with, and are written again at every boot.
  printf 'instance-id: stock-1\nlocal-hostname: stock\n' >"$seed/meta-data"
  printf '#cloud-config\nmanage_etc_hosts: true\npreserve_hostname: false\n' >"$seed/user-data"
  cat >"$1/etc/cloud/cloud.cfg.d/95-site.cfg" <<'YAML'
datasource_list: [ NoCloud, None ]
network: { config: disabled }
apt: { preserve_sources_list: true }
ssh_deletekeys: false
locale: C.UTF-8
users: []
YAML
  printf 'PasswordAuthentication yes\n' >"$1/etc/ssh/sshd_config.d/50-cloud-init.conf"
  printf "\$nrconf{restart} = 'a';\n" >"$1/etc/needrestart/conf.d/50-site.conf"
  printf 'APT::Periodic::Update-Package-Lists "1";\nAPT::Periodic::Unattended-Upgrade "1";\n' >"$1/etc/apt/apt.conf.d/20auto-upgrades"
  chroot "$1" systemctl -q disable ssh.service
  chroot "$1" systemctl -q enable ssh.socket
}
stage "a stock host"
stock_machine node02 10.20.0.12 52:54:00:20:00:02 >"$work/stock.log" 2>&1 || { cat "$work/stock.log"; die "a stock host for node02"; }
stage "node01"
$muster up "$work/one.yaml" --yes --report "$work/report" >"$work/up.log" || { tail -n 40 "$work/up.log"; die "node01"; }

on() { node_ssh node02 "$@" | tr -d '\r'; }
active() { on systemctl is-active "$@" | tr '\n' ' '; }
boot_id() { on cat /proc/sys/kernel/random/boot_id; }
cloud_init_done() {
  local said
  said=$(on sudo cloud-init status --wait --long 2>/dev/null) || true
  [[ $said != *"status: error"* ]] || die "cloud-init: $said"
  [[ $said == *"status: done"* ]]
}
stage "its first boot"
check "cloud-init has done its work" wait_until 600 cloud_init_done
check "it has written the hosts file" node_ssh node02 grep -q "'^127.0.1.1 stock'" /etc/hosts
check "sshd is started by its socket, and the other daemons run" test "$(active ssh.socket systemd-timesyncd unattended-upgrades)" = "active active active "
check "netplan has made the network" node_ssh node02 test -s /run/systemd/network/10-netplan-site.network
network() { on "sudo sha256sum /etc/netplan/50-site.yaml; ip -4 -br address show scope global"; }
network >"$work/network"

key=$MUSTER_LAB_DIR/ssh/id_ed25519
pin=$(node_ssh node02 sudo ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub | cut -d' ' -f2)
adopt() { ip netns exec muster-quickstart "$muster" node add spare02 --adopt 10.20.0.12 --user ops --key "$key" --report "$work/report-adopt" "$@"; }
stays() {  # stays WHEN
  echo "  $1:"
  check "spare02 is accepted" test "$(node_state spare02)" = accepted
  check "its name is the cluster's" test "$(on hostname) $(on cat /etc/hostname)" = "spare02 spare02"
  check "its hosts file is muster's" test "$(on grep -c -e "'^# Written by muster'" -e "' spare02'" -e "'^127.0.1.1'" /etc/hosts)" = 2
  check "no login by password, whatever cloud-init has set" node_ssh node02 "sudo /usr/sbin/sshd -T | grep -qx 'passwordauthentication no'"
  check "sshd is still started by its socket" test "$(active ssh.socket)" = "active "
  check "chrony keeps the time, alone" test "$(active chrony systemd-timesyncd)" = "active inactive "
  check "and follows node01" node_ssh node02 "sudo chronyc -n sources | grep -q '10\.20\.0\.11 '"
  check "nothing upgrades packages by itself" test "$(on systemctl is-enabled unattended-upgrades apt-daily-upgrade.timer | tr '\n' ' ')" = "masked masked "
  check "needrestart only lists" test "$(on "sudo perl -e 'our %nrconf; do \$_ for sort glob(q(/etc/needrestart/conf.d/*.conf)); print \$nrconf{restart}'")" = l
  check "its network is as it was" sh -c "diff '$work/network' '$work/network-now'"
}
stage "adopted"
adopt --like node01 --host-key "$pin" --yes | tee "$work/adopt.log"
network >"$work/network-now"
stays "adopted"
stage "adopted again"
adopt --yes | tee "$work/again.log"
check "the second time there is nothing to do" grep -q "nothing changed" "$work/again.log"

stage "restarted"
first=$(boot_id)
node_ssh node02 sudo systemctl reboot || true
restarted() { local now; now=$(boot_id 2>/dev/null) && [[ -n $now && $now != "$first" ]]; }
check "it is restarted" wait_until 600 restarted
check "cloud-init has done its work again" wait_until 600 cloud_init_done
check "its agent is back" wait_until 180 node_is spare02 '(.silent_since // 0) == 0'
check "its time source is back" wait_until 120 node_ssh node02 systemctl is-active --quiet chrony
network >"$work/network-now"
stays "restarted"
adopt --yes | tee "$work/back.log"
check "and no step would change anything" grep -qE 'nothing changed|^0 steps would change' "$work/back.log"
