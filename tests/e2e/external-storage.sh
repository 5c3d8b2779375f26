#!/usr/bin/env bash
# two nodes with a mirror each mount what a third serves as the site would: accepted; the server goes, named at once and nothing hangs; it is back, all goes on
# stands on: agent/steps/disk agent/steps/not_applicable* agent/storage/{external,health,parts}* controller/engines/{engine,external_engine,local_engine}*
# stands on: controller/link/storage_reports* controller/plan/storage_context* controller/power/redfish* controller/spec/reader/reader_external*
# stands on: playbooks/base.yaml playbooks/firewall.yaml playbooks/ssh.yaml playbooks/storage-external.yaml playbooks/storage-local.yaml
# stands on: playbooks/storage-nfs.yaml
source "$(dirname "$0")/lib.sh"
basics="base, ssh, firewall, storage-local, storage-external"
key=$(sed -n 's/^  ops: //p' lab/quickstart.yaml)
machine() {  # machine NAME NUMBER ROLE IMAGE MORE-KEYS MORE-DISKS
  printf '  - { name: %s, role: %s, image: %s, mac: "52:54:00:22:00:0%s", power: { driver: redfish, address: 10.20.1.1%s, secret: bmc }, hardware: { cpus: 1, memory: ">= 1800 MiB" }%s,\n' "$1" "$3" "$4" "$2" "$2" "$5"
  printf '      disks: { os: { match: { serial: "LABOS*", size: 8 GiB, count: 1 }, policy: format-if-blank }%s } }\n' "${6:-}"
}
fast=', fast: { match: { serial: "LABFAST*", size: 1 GiB, count: 2 }, policy: format-if-blank }'
cat >"$work/cluster.yaml" <<YAML
cluster: tenant
network:
  provisioning: { cidr: 10.20.0.0/24, dhcp: managed }
  bmc:          { cidr: 10.20.1.0/24 }
users:
  ops: $key
images:
  work: { recipe: debian-12, kernel: cloud, bake: [ $basics ] }
  nas:  { recipe: debian-12, kernel: cloud, bake: [ base, ssh, firewall, storage-nfs ] }
nodes:
$(machine comp01 1 compute work "" "$fast")
$(machine comp02 2 compute work "" "$fast")
$(machine site01 3 site nas ", address: 10.20.0.50")
storage:
  scratch: { engine: local, disks: fast, level: raid1, fs: xfs, mount: /scratch }
  home:    { engine: external, fstype: nfs4, source: "10.20.0.50:/srv/site", mount: /home/site, nodes: { role: compute }, writable: true }
  papers:  { engine: external, fstype: nfs4, source: "10.20.0.50:/srv/site/papers", options: ro, mount: /papers, nodes: { role: compute } }
roles:
  compute: { playbooks: [ $basics ] }
  site:    { playbooks: [ base, ssh, firewall, storage-nfs ] }
acceptance: { profile: lab }
limits: { netboot: 10 min, boot: 10 min }
lab:
  memory_mib: 2048
  smp: 1
  profile: generic
  drives:
    - { name: os,   size: 8 GiB, serial_prefix: LABOS }
    - { name: fast, size: 1 GiB, serial_prefix: LABFAST, count: 2 }
YAML
sed 's/level: raid1/level: raid5/' "$work/cluster.yaml" >"$work/wrong.yaml"
check "two drives are no raid5" sh -c "! $muster spec check '$work/wrong.yaml' >'$work/wrong.log' 2>&1 && grep -q 'storage.scratch.level' '$work/wrong.log'"

lab_up
# Only the site configures its server: its export is made by hand.
$muster up "$work/cluster.yaml" --yes --limit site01 --report "$work/site" >"$work/site.log" || { tail -n 40 "$work/site.log"; die "site01"; }
node_ssh site01 "sudo sh -c 'set -e; mkdir -p /srv/site/papers /etc/exports.d /etc/nfs.conf.d; chown nobody:nogroup /srv/site; chmod 1777 /srv/site; echo paper >/srv/site/papers/one
  printf \"[nfsd]\nvers3=n\n\" >/etc/nfs.conf.d/site.conf   # the image has no rpcbind, which NFSv3 needs
  echo \"/srv/site 10.20.0.0/24(rw,sync,no_subtree_check,root_squash,crossmnt)\" >/etc/exports.d/site.exports; systemctl enable -q --now nfs-server; exportfs -ra'"

$muster up "$work/cluster.yaml" --yes --report "$work/report" | tee "$work/up.log"
report=$work/report/report.json
check "both are accepted; the site's server was before" test "$(jq -r '[.nodes[] | select(.verdict == "accepted")] | length' "$report")" = 2
check "no floor is applied to the site's storage" \
  jq -e '[.nodes[].checks[] | select(.name | test("^site storage/.*_mbps"))] | length > 0 and all(.derivation | test("`min`") | not)' "$report"
for n in comp01 comp02; do
  check "$n has both mounted, without set-user-id and devices" sh -c "$muster lab ssh $n -- cat /proc/self/mountinfo | grep -cE ' (/home/site|/papers) r[wo],nosuid,nodev.* - nfs4 10.20.0.50:/srv/site' | grep -qx 2"
  check "$n has a mirror" sh -c "$muster lab ssh $n -- cat /proc/mdstat | grep -q 'active raid1'"
done
check "nothing was written where that is not declared" test "$(node_ssh site01 ls -A /srv/site/papers)" = one
check "nothing is left where it is" fails_on site01 "ls -A /srv/site | grep -q muster-probe"

$muster up "$work/cluster.yaml" --yes >"$work/again.log" || { tail -n 40 "$work/again.log"; die "the second up"; }
check "the second up says that nothing changed" grep -q "already accepted, nothing changed" "$work/again.log"

# A mirror's half dies: named by its serial, never recreated; put in again by hand, it goes on.
again() {  # again NODE: its steps once more, although nothing changed
  $muster approve "$($muster plan --limit "$1" --force "$1" --json | jq -r .digest)"
}
md() { node_ssh comp01 sudo mdadm "$@" >/dev/null 2>&1; }
disk=$(node_ssh comp01 "cat /proc/mdstat" | sed -n 's/.*raid1 \([a-z0-9]*\)\[.*/\1/p')
serial=$(node_ssh comp01 cat "/sys/block/$disk/device/serial" | tr -d ' ')
md /dev/md/scratch --fail "/dev/$disk" || die "mdadm --fail"
wait_until 30 md /dev/md/scratch --remove "/dev/$disk" || die "mdadm --remove"
again comp01 >"$work/degraded.log" 2>&1 && die "a degraded mirror was accepted"
check "the lost drive is named" node_is comp01 ".state == \"quarantined\" and (.reason | contains(\"$serial\"))"
md /dev/md/scratch --add "/dev/$disk" || die "mdadm --add"
expect_exit 0 $muster up "$work/cluster.yaml" --yes --report "$work/mended"

# The server goes: its packets vanish, as with a pulled cable. comp02 has nothing mounted at that moment.
node_ssh comp02 sudo systemctl stop muster-external-home muster-external-papers
node_ssh site01 sudo iptables -I INPUT -p tcp --dport 2049 -j DROP
for n in comp01 comp02; do
  start=$SECONDS
  again "$n" >"$work/$n-gone.log" 2>&1 && die "$n was accepted without its storage"
  check "$n: a failure that names the server, in $((SECONDS - start)) s" node_is "$n" '.state == "quarantined" and (.reason | contains("10.20.0.50"))'
  $muster report --format json >"$work/$n-gone.json"
  check "$n: its step failed within two minutes, instead of hanging" \
    jq -e --arg n "$n" '[.nodes[] | select(.name == $n) | .steps[] | select(.status == "failed") | .duration_ms] | length > 0 and all(. < 130000)' "$work/$n-gone.json"
  check "$n still answers" node_ssh "$n" true
done
check "status tells of it" sh -c "$muster status --json | jq -e '.storage[] | select(.name == \"home\") | .healthy == false'"

node_ssh site01 sudo iptables -D INPUT -p tcp --dport 2049 -j DROP
answers() { node_ssh comp01 timeout 5 stat --file-system /home/site >/dev/null 2>&1; }
# Two attempts on each node took minutes: the next packet of a connection may be two minutes off, a new connection five.
check "the mount of before works again by itself" wait_until 420 answers
expect_exit 0 $muster up "$work/cluster.yaml" --yes --report "$work/back"
check "accepted again" test "$(node_state comp01) $(node_state comp02)" = "accepted accepted"
status_is_well() { $muster status --json | jq -e '.storage | length == 3 and all(.healthy and .size_bytes > 0)' >/dev/null; }
check "status says that all is well" wait_until 300 status_is_well
