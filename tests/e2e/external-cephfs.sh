#!/usr/bin/env bash
# one node mounts a CephFS that two others serve as the site would, with a key of the site's; written there, read here; unmounted and back with the monitor
# stands on: agent/steps/files/config* agent/steps/not_applicable* agent/steps/packages/package*
# stands on: agent/storage/{ceph,external,health,parts,shared}* controller/engines/{ceph_engine,engine,external_engine}*
# stands on: controller/link/storage_reports* controller/plan/storage_context* controller/power/redfish*
# stands on: controller/spec/reader/{own_playbooks,reader_external}* controller/trust/vault* images/debian-13.yaml playbooks/base.yaml
# stands on: playbooks/firewall.yaml playbooks/ssh.yaml playbooks/storage-ceph.yaml playbooks/storage-external.yaml
source "$(dirname "$0")/lib.sh"
basics="base, ssh, firewall"
key=$(sed -n 's/^  ops: //p' lab/quickstart.yaml)
machine() {  # machine NAME NUMBER ROLE IMAGE
  printf '  - { name: %s, role: %s, image: %s, address: 10.20.0.5%s, mac: "52:54:00:23:00:0%s", power: { driver: redfish, address: 10.20.1.1%s, secret: bmc }, hardware: { cpus: 1, memory: ">= 1800 MiB" },\n' "$1" "$3" "$4" "$2" "$2" "$2"
  printf '      disks: { os: { match: { serial: "LABOS*", size: 8 GiB, count: 1 }, policy: format-if-blank }%s } }\n' "$5"
}
store=', store: { match: { serial: "LABSTORE*", size: 4 GiB, count: 1 }, policy: format-if-blank }'
# The key is the site's: a playbook of one's own puts it there, as docs/storage.md says.
ceph_skips_benchmark
cat >"$work/own/site-key.yaml" <<'YAML'
playbook: site-key
help: the key of the site's file system
steps:
  - name: key
    module: file
    params: { path: /etc/site.secret, mode: "0600", owner: root, group: root, content: "secret:site-ceph" }
YAML
# spec FSID NAME-OF-THE-KEY: the site's cluster is known by both, and only once it is there.
spec() {
  cat <<YAML
cluster: tenant
network:
  provisioning: { cidr: 10.20.0.0/24, dhcp: managed }
  bmc:          { cidr: 10.20.1.0/24 }
  proxy: http://10.20.0.1:3142
users:
  ops: $key
playbooks: [ own ]
images:
  work: { recipe: debian-13, kernel: cloud, bake: [ $basics, storage-external ] }
  nas:  { recipe: debian-13, kernel: cloud, bake: [ $basics, storage-ceph ] }
nodes:
$(machine comp01 1 compute work "")
$(machine site01 2 site nas "$store")
$(machine site02 3 site nas "$store")
storage:
  vault: { engine: ceph, disks: store, copies: 2, mount: /vault, nodes: { role: site } }
  home:  { engine: external, fstype: ceph, source: "muster@$1.vault=/", options: "mon_addr=10.20.0.52:3300,ms_mode=prefer-crc,secretfile=/etc/site.secret", mount: /home/site, nodes: { role: compute }, writable: true }
roles:
  compute: { playbooks: [ $basics, site-key, storage-external ] }
  site:    { playbooks: [ $basics, storage-ceph ] }
acceptance: { profile: lab }
limits: { netboot: 10 min, boot: 10 min }
lab:
  memory_mib: 3072
  smp: 1
  profile: generic
  drives:
    - { name: os,    size: 8 GiB, serial_prefix: LABOS }
    - { name: store, size: 4 GiB, serial_prefix: LABSTORE }
YAML
}
spec 11111111-2222-8333-a444-555555555555 >"$work/cluster.yaml"
lab_up
on() { node_ssh "$@"; }
echo "none yet" | $muster secret set site-ceph
$muster up "$work/cluster.yaml" --yes --limit site01,site02 --report "$work/site" >"$work/site.log" || { tail -n 40 "$work/site.log"; die "the site"; }
fsid=$(on site01 sudo ceph fsid | tr -d '\r')
spec "$fsid" >"$work/cluster.yaml"

# A key that is not the site's: mount's error, in good time, and the node holds up no other.
on site01 sudo ceph-authtool --gen-print-key | tr -d '\r\n' | $muster secret set site-ceph
expect_exit 1 $muster up "$work/cluster.yaml" --yes --report "$work/wrong"
$muster why comp01
check "the server and what mount said are named" \
  node_is comp01 '.state == "quarantined" and (.reason | contains("10.20.0.52") and contains("mount error"))'
on site01 sudo cat /etc/ceph/muster.secret | tr -d '\r\n' | $muster secret set site-ceph
$muster up "$work/cluster.yaml" --yes --report "$work/report" >"$work/up.log" || { tail -n 40 "$work/up.log"; die "comp01"; }
check "comp01 is accepted" test "$(node_state comp01)" = accepted
check "CephFS's client was in no image: the playbook installed it" test "$(journal "select count(*) from journal where node = 'comp01' and event = 'step'
  and json_extract(data, '\$.step') like '%client of CephFS%' and json_extract(data, '\$.status') = 'applied'")" -gt 0
check "it is the kernel's mount of that cluster, without set-user-id and devices" \
  sh -c "$muster lab ssh comp01 -- cat /proc/self/mountinfo | grep -qE ' /home/site rw,nosuid,nodev.* - ceph muster@$fsid.vault=/'"
check "there is a report" test -s "$work/report/report.json"
check "no key is in a log or report" \
  nowhere_in "$(on site01 sudo cat /etc/ceph/muster.secret | tr -d '\r')" "$MUSTER_LAB_DIR"/musterd.log "$work/report" "$work/up.log"
check "it is in a file of root's" test "$(on comp01 sudo stat -c %a:%U:%G /etc/site.secret | tr -d '\r')" = 600:root:root
check "nor in a unit or the mount table" fails_on comp01 "sudo grep -rqFf /etc/site.secret /etc/systemd/system /proc/mounts"
check "it has none of the site's daemons, and no ceph.conf of muster's" fails_on comp01 "test -e /etc/ceph/ceph.conf -o -e /usr/bin/ceph-osd"
check "no floor is applied to the site's storage" \
  jq -e '[.nodes[] | select(.name == "comp01") | .checks[] | select(.name | test("^site storage/.*_mbps"))] | length > 0 and all(.derivation | test("`min`") | not)' "$work/report/report.json"
on site02 sudo sh -c "'dd if=/dev/urandom of=/vault/blob bs=1M count=8 conv=fsync 2>/dev/null; sha256sum </vault/blob'" >"$work/blob"
check "written on a node of the site, the same here" sh -c "$muster lab ssh comp01 -- 'sha256sum </home/site/blob' | diff - '$work/blob'"
check "nothing is left of what muster wrote" fails_on site01 "ls -A /vault | grep -q muster-probe"
$muster up "$work/cluster.yaml" --yes >"$work/again.log" || { tail -n 40 "$work/again.log"; die "the second up"; }
check "the second up says that nothing changed" grep -q "already accepted, nothing changed" "$work/again.log"

# At a boot the monitor is not there: it is mounted once it is.
was=$(on comp01 cat /proc/sys/kernel/random/boot_id)
$muster power off comp01 --yes
on site01 sudo iptables -I INPUT -s 10.20.0.51 -j DROP
$muster power on comp01
booted() { local is; is=$(timeout 15 "$muster" lab ssh comp01 -- cat /proc/sys/kernel/random/boot_id 2>/dev/null) && [[ -n $is && $is != "$was" ]]; }
check "it boots without it" wait_until 600 booted
state() { $muster status --json | jq -e '.storage[] | select(.name == "home") | .healthy == false and (.problems[0].problem | contains("not mounted"))' >/dev/null; }
check "status tells of it" wait_until 240 state
on site01 sudo iptables -D INPUT -s 10.20.0.51 -j DROP
back() { timeout 15 "$muster" lab ssh comp01 -- "sha256sum </home/site/blob" 2>/dev/null | diff -q - "$work/blob" >/dev/null; }
check "mounted by itself once the monitor is back" wait_until 240 back
