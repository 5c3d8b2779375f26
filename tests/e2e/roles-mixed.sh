#!/usr/bin/env bash
# three machines in three roles: a head that leads Slurm and Prometheus although its name sorts last, a storage node with neither Slurm nor MPI, one that computes
# stands on: agent/steps/files/directory* agent/steps/not_applicable* agent/steps/packages/package* agent/steps/system/reboot*
# stands on: agent/steps/services agent/storage/{nfs,parts}* controller/engines/{engine,nfs_engine}* controller/hosts/hosts_spec*
# stands on: controller/plan controller/power/redfish* controller/spec/hardware* controller/spec/reader/reader_rules* playbooks/acceptance/lab.yaml
# stands on: playbooks/base.yaml playbooks/firewall.yaml playbooks/monitoring.yaml playbooks/mpi.yaml playbooks/scheduler.yaml playbooks/ssh.yaml
# stands on: playbooks/storage-nfs.yaml
source "$(dirname "$0")/lib.sh"
basics="base, ssh, firewall, storage-nfs"
key=$(sed -n 's/^  ops: //p' lab/quickstart.yaml)
machine() {  # machine NAME NUMBER ROLE IMAGE MORE-DISKS
  printf '  - { name: %s, role: %s, image: %s, mac: "52:54:00:21:00:0%s", power: { driver: redfish, address: 10.20.1.1%s, secret: bmc }, hardware: { cpus: 1, memory: ">= 1800 MiB" },\n' "$1" "$3" "$4" "$2" "$2"
  printf '      disks: { os: { match: { serial: "LABOS*", size: 8 GiB, count: 1 }, policy: format-if-blank }%s } }\n' "${5:-}"
}
cat >"$work/cluster.yaml" <<YAML
cluster: medley
network:
  provisioning: { cidr: 10.20.0.0/24, dhcp: managed }
  bmc:          { cidr: 10.20.1.0/24 }
users:
  ops: $key
images:
  work:  { recipe: debian-12, kernel: cloud, bake: [ $basics, mpi, scheduler, monitoring ] }
  store: { recipe: debian-12, kernel: cloud, bake: [ $basics ] }
nodes:
$(machine arc01 1 storage store ', home: { match: { serial: "LABHOME*", size: 1 GiB, count: 1 }, policy: format-if-blank }')
$(machine comp01 2 compute work)
$(machine zhead01 3 head work)
storage:
  home: { engine: nfs, server: arc01, disks: home, mount: /home/shared }
roles:
  head:    { playbooks: [ $basics, scheduler, monitoring ], leads: [ scheduler, monitoring ] }
  compute: { playbooks: [ $basics, mpi, scheduler, monitoring ] }
  storage: { playbooks: [ $basics ] }
acceptance: { profile: lab }
limits: { netboot: 10 min, boot: 10 min }
lab:
  memory_mib: 2048
  smp: 1
  profile: generic
  drives:
    - { name: os,   size: 8 GiB, serial_prefix: LABOS }
    - { name: home, size: 1 GiB, serial_prefix: LABHOME }
YAML
sed 's/leads: \[ scheduler, monitoring \]/leads: [ scheduler, mpi ]/' "$work/cluster.yaml" >"$work/wrong.yaml"
check "a role cannot lead what it has not" sh -c "! $muster spec check '$work/wrong.yaml' >'$work/wrong.log' 2>&1 && grep -q 'roles.head.leads\[1\]' '$work/wrong.log'"

lab_up
# In the order of docs/first-cluster.md, section 5: first who serves the others, then one that mounts it, then all of them.
order='muster up cluster.yaml --limit head01,store01`, then `--limit gpu01`'
check "the page says so" grep -qF -- "$order" docs/first-cluster.md
$muster up "$work/cluster.yaml" --limit zhead01,arc01 --yes --report "$work/servers" | tee "$work/up.log"
check "head and storage are accepted before anybody computes" test "$(node_state zhead01) $(node_state arc01)" = "accepted accepted"
lab_power() { $muster lab status --json | jq -r --arg n "$1" '.nodes[] | select(.name == $n) | .power'; }
check "the other was left alone" test "$(lab_power comp01)" = off
$muster up "$work/cluster.yaml" --limit comp01 --yes --report "$work/one" | tee -a "$work/up.log"
check "it mounts what they serve, and is accepted" test "$(node_state comp01)" = accepted
$muster up "$work/cluster.yaml" --yes --report "$work/all" | tee -a "$work/up.log"
expect_exit 0 $muster accept --yes --report "$work/report"
report=$work/report/report.json
check "3 of 3 accepted" test "$(jq -r '[.nodes[] | select(.verdict == "accepted")] | length' "$report")" = 3
check "tests between MPI's nodes do not apply: there is one" \
  jq -e '[.nodes[] | .name as $n | .checks[] | select(.verdict == "not_applicable" and (.name | test("^all-reduce over mpi"))) | $n] | length > 0 and all(. == "comp01")' "$report"

on() { node_ssh "$@"; }
check "Slurm has the nodes with the scheduler, no others" test "$(on comp01 sinfo -h -N -o %N | sort -u | tr -s ' \n' ' ')" = "comp01 zhead01 "
idle() { [[ $(on comp01 sinfo -h -N -o %T | sort -u | tr -d ' ') == idle ]]; }
check "and both take jobs" wait_until 120 idle
check "slurmctld is the head's" test "$(on zhead01 systemctl is-active slurmctld)" = active
check "and not the other's" fails_on comp01 "systemctl is-active -q slurmctld"
check "the storage node has no Slurm" fails_on arc01 "test -e /etc/slurm/slurm.conf"
on comp01 sudo runuser -u mpi -- srun --mpi=pmix -N1 -n1 -w comp01 --chdir=/tmp /usr/lib/muster/muster-mpi-check --seconds 1 --max-bytes 65536 >"$work/mpi.json"
check "a job of MPI's user runs, on a controller without MPI" jq -e '.outcome == "measured"' "$work/mpi.json"

scraped() {
  on zhead01 curl -s "'http://zhead01:9090/api/v1/query?query=up'" |
    jq -e '[.data.result[] | select(.value[1] == "1") | .metric.node] | sort == ["comp01", "zhead01"]' >/dev/null
}
check "Prometheus scrapes the nodes with the monitoring, no others" wait_until 60 scraped
check "Prometheus has no other targets" test "$(on zhead01 curl -s "'http://zhead01:9090/api/v1/query?query=count(up)'" | jq -r '.data.result[0].value[1]')" = 2
check "it runs on the head only" fails_on comp01 "systemctl is-active -q prometheus"

check "the storage node serves both others" sh -c "test \$($muster lab ssh arc01 -- sudo exportfs -s | grep -c root_squash) = 2"
check "names are of all nodes" sh -c "$muster lab ssh comp01 -- grep -c -E \"'(arc01|comp01|zhead01)\$'\" /etc/hosts | grep -qx 3"

$muster up "$work/cluster.yaml" --yes >"$work/again.log" || { tail -n 40 "$work/again.log"; die "the second up"; }
check "the second up says that nothing changed" grep -q "already accepted, nothing changed" "$work/again.log"
# Without the head: what it leads is not the storage node's.
$muster power off zhead01 --yes
digest=$($muster plan --limit arc01 --force arc01 --json | jq -r .digest)
expect_exit 0 $muster approve "$digest"
check "without the head the storage node is configured and accepted again" test "$(node_state arc01)" = accepted
