#!/usr/bin/env bash
# the first day, with the packages in a guest: doctor finds planted faults and none on a healthy lab; a spec is previewed, refused, stored, rolled back
# stands on: agent/core cli controller/api controller/bringup/{bringup,plan_worker,planning_snapshot,spec_preview,whole_spec}* controller/doctor
# stands on: controller/image/service/image_request* controller/link controller/options controller/plan/plan_preview* controller/power/redfish*
# stands on: playbooks/base.yaml playbooks/ssh.yaml schema/spec.schema.json scripts/package.sh systemd
source "$(dirname "$0")/lib.sh"
debs=$work/debs
scripts/package.sh --of "${MUSTER_BUILD:-build}" "$debs" >"$work/package.log" 2>&1 || { cat "$work/package.log"; die "package.sh"; }

# node01 becomes the controller of node02, as in packages.sh.
cat >"$work/cluster.yaml" <<'YAML'
cluster: first-day
network:
  provisioning: { cidr: 10.20.0.0/24, dhcp: managed }
  controller: 10.20.0.1
  bmc:          { cidr: 10.20.1.0/24 }
users:
  ops: { keys: [ "ssh-ed25519 LAB_SSH_KEY lab" ], sudo: true }
images:
  cpu: { recipe: debian-12, kernel: cloud, bake: [ base, ssh ] }
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
acceptance: { profile: lab }
lab:
  memory_mib: 2048
  smp: 1
  drives:
    - { name: os, size: 24 GiB, serial_prefix: LABOS }
  nodes:
    node01: { memory_mib: 3072, smp: 2 }
YAML
$muster lab up "$work/cluster.yaml"   # not lab_up: the image is not to be there yet
kernel_options=$(lab_kernel_options)
spec_of() {  # spec_of NUMBER CONTROLLER
  sed -e "s/node\[01-02\]/node[$1-$1]/" -e "s/mac: .*/mac: [ \"52:54:00:20:00:$1\" ]/" -e "s/controller: [0-9.]*/controller: $2/" \
    -e '/^lab:/,$d' "$MUSTER_LAB_DIR/cluster.yaml"
}
spec_of 01 10.20.0.1 >"$work/first.yaml"
spec_of 02 10.20.0.11 >"$work/second.yaml"

stage "before anything: what the file declares, and what it would do"
$muster spec explain "$work/first.yaml" --json >"$work/explained.json"
check "explain writes out name, address, MAC and BMC" test "$(jq -c '.nodes | map([.name, .address, .mac, .power.address])' "$work/explained.json")" = \
  '[["node01","10.20.0.11","52:54:00:20:00:01","10.20.1.11"]]'
check "explain KEY is plain text" says_without '](' "$muster" spec explain nodes.power
$muster plan "$work/first.yaml" --json >"$work/preview.json"
check "the image is to be built, the node to be discovered" jq -e \
  '.revision == 0 and .coming == 1 and .images[0].name == "cpu" and .plans[0].kind == "discover" and .plans[0].nodes[0].node == "node01"' "$work/preview.json"
check "its digest can be approved, and it has the warnings" jq -e '.digest != "" and (.warnings | type) == "array"' "$work/preview.json"
check "and nothing is stored" sh -c "! $muster spec show >/dev/null 2>&1"
expect_exit 4 $muster up "$work/first.yaml" </dev/null
check "nor by an up without an approval" sh -c "! $muster spec show >/dev/null 2>&1"

stage "node01, and the packages on it"
$muster up "$work/first.yaml" --yes --report "$work/report" >"$work/first.log" || { cat "$work/first.log"; die "node01"; }
$muster image export cpu "$work/cpu.image"
serves_dhcp() { [[ $($muster lab exec -- ss -Hlun 'sport = :67') == *:67* ]]; }
pid=$(jq -r .pid "$MUSTER_LAB_DIR/musterd.pid")
kill "$pid"
gone() { ! kill -0 "$pid" 2>/dev/null && ! serves_dhcp; }
check "the lab's controller ends, and nothing serves DHCP any more" wait_until 20 gone
guest() { node_ssh node01 "sudo bash -euc \"\$(echo $(base64 -w0 <<<"$1") | base64 -d)\"" </dev/null; }
into_guest() { node_ssh node01 sudo sh -c "'cat > $2'" <"$1"; }
guest 'mkdir -p /var/tmp/debs && ip route add 10.20.1.0/24 via 10.20.0.1'
for file in "$debs"/muster_*.deb "$debs"/muster-controller_*.deb; do into_guest "$file" "/var/tmp/debs/$(basename "$file")"; done
into_guest "$work/cpu.image" /root/cpu.image
into_guest "$work/second.yaml" /root/cluster.yaml
into_guest <(printf '%s\n' "MUSTER_KERNEL_OPTIONS=$kernel_options" MUSTERD_OPTIONS=--lab) /root/lab.env
guest 'echo "Acquire::http::Proxy \"http://10.20.0.1:3142\";" >/etc/apt/apt.conf.d/proxy
  echo "APT::Get::Assume-Yes 1; APT::Install-Recommends 0;" >/etc/apt/apt.conf.d/unasked
  apt-get -qq update; cd /var/tmp/debs; DEBIAN_FRONTEND=noninteractive apt-get install ./*.deb
  sed -i "/^MUSTERD_OPTIONS=/d" /etc/muster/musterd.env
  cat /root/lab.env >>/etc/muster/musterd.env
  systemctl restart musterd' >"$work/apt.log" 2>&1 || { cat "$work/apt.log"; die "apt"; }
guest 'muster image import /root/cpu.image; rm /root/cpu.image'

stage "doctor"
right=$(tr -d '\n' <"$MUSTER_LAB_DIR/bmc-secret")
set_secret() { into_guest <(printf %s "$1") /run/bmc; guest 'muster secret set bmc </run/bmc; rm /run/bmc'; }
# Exit status of doctor; what it found is in $work/doctor.json.
doctor() { guest "muster doctor --json ${1:-/root/cluster.yaml}" >"$work/doctor.json"; }
found() { jq -e --arg code "$1" 'any(.checks[]; .code == $code and .state == "findings" and (.findings | all(.next != "")))' "$work/doctor.json" >/dev/null; }
set_secret "$right"
expect_exit 0 doctor
check "a healthy lab: no finding, nothing left out" jq -e '.state == "healthy" and all(.checks[]; .state == "healthy")' "$work/doctor.json"

set_secret admin:not-the-password
$muster lab exec -- dnsmasq --keep-in-foreground --conf-file=/dev/null --pid-file= --user=root --group=root --port=0 --leasefile-ro \
  --dhcp-authoritative --dhcp-range=10.20.0.200,10.20.0.210,1h >"$work/rival.log" 2>&1 &
rival=$!
check "another DHCP server is there" wait_until 20 serves_dhcp
# shellcheck disable=SC2016
guest 'systemctl stop musterd
  systemd-run -q --unit=squatter systemd-socket-activate -l 0.0.0.0:7480 /bin/cat
  systemctl start musterd
  free=$(df --output=avail -B1 /var/lib/muster | tail -n 1); fallocate -l $((free - 1073741824)) /var/lib/muster/filled'
sed -e 's/^images:/images:\n  other: { recipe: debian-12, kernel: cloud }/; s/image: cpu/image: other/' \
  -e 's#^  controller: .*#&\n  apt: { mirror: "http://10.20.0.1:9/debian" }#' "$work/second.yaml" >"$work/faulty.yaml"
into_guest "$work/faulty.yaml" /root/faulty.yaml
expect_exit 3 doctor /root/faulty.yaml
for code in bmc-login dhcp-rival mirror-incomplete disk-space port-in-use; do check "doctor finds $code, with what to do" found "$code"; done
check "and it stored no spec" guest '! muster spec show >/dev/null 2>&1'
kill "$rival"
wait "$rival" 2>/dev/null || true
guest 'rm /var/lib/muster/filled; systemctl stop squatter; systemctl restart musterd'
set_secret "$right"
check "repaired, it is healthy again" wait_until 120 doctor

stage "a changed spec"
guest 'cd /root && muster up cluster.yaml --yes --report report' >"$work/second.log" || { cat "$work/second.log"; die "node02"; }
sed 's/^users:/sysctls: { vm.swappiness: "10" }\nusers:/' "$work/second.yaml" >"$work/changed.yaml"
into_guest "$work/changed.yaml" /root/changed.yaml
# All that a preview must leave as it is; what the node's agent was ordered is in its log.
state() {
  guest 'muster spec history --json; muster runs --json; muster image list --json; muster logs node02 --json | grep -c . || true'
  node_ssh node02 sudo sh -c "'ls /state/muster | sort; journalctl -u muster-agent -o cat | grep -c steps || true'" </dev/null
}
before=$(state)
guest 'muster plan /root/changed.yaml --json' >"$work/preview.json"
check "the plan names node02, why, and the one step that changes" jq -e '.unchanged == false and .images == [] and .secrets == [] and
  (.plans | length) == 1 and .plans[0].kind == "apply" and (.plans[0].nodes | length) == 1 and
  (.plans[0].nodes[0] | .node == "node02" and .work == "configure" and .why != "" and .accepted_again and .compared and
    (.steps | length) == 1 and (.steps[0] | .module == "sysctl" and .change == "added" and .step == "base/declared kernel parameters"))' "$work/preview.json"
check "nothing was stored, built or requested of nodes" test "$(state)" = "$before"
guest 'muster plan /root/changed.yaml --live --json' >"$work/live.json"
check "with --live its agent checks the steps, and finds that one not as declared" jq -e '.live | length == 1 and
  (.[0] | .node == "node02" and .error == "" and .as_declared > 3 and
    any(.steps[]; .step == "base/declared kernel parameters" and (.diff | test("swappiness"))))' "$work/live.json"
revision() { guest 'muster spec show --json' | jq .revision; }
was=$(revision)
digest=$(jq -r .digest "$work/preview.json")
echo "# a word more" | cat "$work/changed.yaml" - >"$work/other.yaml"
into_guest "$work/other.yaml" /root/other.yaml
expect_exit 4 guest "muster up /root/other.yaml --approve $digest"
check "another text than the approved one is not stored" test "$(revision)" = "$was"
# shellcheck disable=SC2016
expect_exit 4 guest 'printf "n\n" | script -qec "muster up /root/changed.yaml" /root/no.log >/dev/null'
check "it was shown" guest 'grep -q swappiness /root/no.log'
check "answered no, the old revision is the newest" test "$(revision)" = "$was"
guest 'muster spec diff /root/changed.yaml' | tee "$work/diff.log"
check "diff shows the line" grep -q '^+sysctls' "$work/diff.log"
guest 'muster up /root/changed.yaml --yes --report /root/report2' >"$work/changed.log" || { cat "$work/changed.log"; die "the changed spec"; }
swappiness() { node_ssh node02 cat /proc/sys/vm/swappiness </dev/null; }
check "carried out on the node" test "$(swappiness)" = 10
check "stored as the next revision" test "$(revision)" = $((was + 1))
guest "muster spec rollback $was --yes --json" >"$work/back.json"
check "the rollback names the revision that it stored" test "$(jq .revision "$work/back.json")" = $((was + 2))
check "rolled back, its text is that of before" guest 'muster spec diff /root/cluster.yaml --json | grep -q "\"unchanged\": true"'
guest 'muster spec history --json' >"$work/history.json"
check "history says who and when" jq -e --argjson newest $((was + 2)) '.specs | any(.[]; .revision == $newest and (.note | test("back to revision")))
  and all(.[]; .caller != "" and .time > 0)' "$work/history.json"
