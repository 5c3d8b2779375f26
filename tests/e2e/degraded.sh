#!/usr/bin/env bash
# one node's link at a third and another's slow drive: accepted, degraded with the link named, degraded with the drive named; the report is signed
# stands on: cli/{report_verb,verify_report}* controller/bringup/acceptance* controller/engines/local_engine* controller/plan/acceptance_steps*
# stands on: controller/power/redfish* controller/{locate,report} kernels/* kernels/{common,counters,cpu,drives,link,rdma,together,training}
# stands on: lab/fault* playbooks/acceptance/lab-compare.yaml playbooks/base.yaml playbooks/firewall.yaml playbooks/ssh.yaml
# stands on: playbooks/storage-local.yaml
source "$(dirname "$0")/lib.sh"
source tests/e2e/labs/small.sh
# No shared storage and no acceptance while installing: neither is what this test is about.
small_spec 3 >"$work/cluster.yaml"
shared_lab small

verdict() { jq -r --arg n "$1" '.nodes[] | select(.name == $n) | .verdict' "$report"; }
reason() { jq -r --arg n "$1" '.nodes[] | select(.name == $n) | .reason' "$report"; }
has() { [[ $1 == *"$2"* ]]; }
accept() { $muster accept --profile lab-compare --yes --report "$1"; }   # its exit code is the test's
# Links get a speed of their own, well below what emulated processors reach (11 to 75 MB/s, by what else the host does): else those
# are what is measured. A drive of the lab reads 80 to 490 MB/s.
full=24mbit third=8mbit slow_drive=8000000
for node in node01 node02 node03; do $muster lab break "$node" shape "$full"; done
report=$work/healthy/report.json
expect_exit 0 accept "$work/healthy"

serial=$(jq -r '[.nodes[] | select(.name == "node03") | .disks[] | select(.group == "fast") | .serial] | sort | .[0]' "$report")
echo "  link of node02 at $third of $full, drive fast1 ($serial) of node03 at $slow_drive bytes/s"
$muster lab break node02 shape "$third"
$muster lab break node03 slow-drive fast1 --rate "$slow_drive"

report=$work/slow/report.json
expect_exit 5 accept "$work/slow"
jq -c '[.links[] | [.from, .to, .mbps]], [.nodes[].checks[] | select(.name == "drives/read_mbps") | [.subject, .measured]]' "$report"   # to explain a failure
$muster report --format text
check "node01 is accepted" test "$(verdict node01)" = accepted
check "node02 is degraded" test "$(verdict node02)" = degraded
check "the reason names node02's link" has "$(reason node02)" "link of node02"
check "node03 is degraded" test "$(verdict node03)" = degraded
check "the reason names the drive by its serial" has "$(reason node03)" "drive $serial"
check "no other drive is named" test "$(jq '[.nodes[].checks[] | select(.name == "drives/read_mbps" and .verdict != "pass")] | length' "$report")" = 1
check "no node is quarantined" test "$($muster status --json | jq '[.nodes[] | select(.state == "quarantined")] | length')" = 0
check "the node's state says it too" test "$(node_state node02)" = degraded

# The report is what was signed: by us, and to the last byte.
$muster report key >"$work/report.pub"
expect_exit 0 $muster report verify "$report" --key "$work/report.pub"
expect_exit 0 $muster report verify "$report"
sed 's/"node01"/"node0l"/' "$report" >"$work/changed.json"
expect_exit 1 $muster report verify "$work/changed.json" --key "$work/report.pub"
openssl genpkey -algorithm ed25519 2>/dev/null | openssl pkey -pubout >"$work/other.pub"
expect_exit 6 $muster report verify "$report" --key "$work/other.pub"
digest=$(jq -r .signature.digest "$report")
check "HTML and JUnit carry the report's digest" sh -c "grep -q '$digest' '$work/slow/report.html' && grep -q '$digest' '$work/slow/junit.xml'"
check "one flat object per node" test "$(jq -s 'length' "$work/slow/nodes.jsonl")" = 3
check "its failures name the drive" has "$(jq -c 'select(.node == "node03") | .failures' "$work/slow/nodes.jsonl")" "$serial"

# Measured alone, a node cannot wash itself clean: what was slow and was not measured again stays.
report=$work/alone/report.json
expect_exit 5 $muster accept --limit node02 --profile lab-compare --yes --report "$work/alone"
check "node02's link is still held against it" has "$(reason node02)" "link of node02"
if [[ -n ${MUSTER_KEEP_REPORT:-} ]]; then cp -r "$work/slow" "$MUSTER_KEEP_REPORT"; fi

# Repaired, it is accepted again.
$muster lab break node02 shape "$full"
$muster lab break node03 slow-drive fast1 --heal
expect_exit 0 accept "$work/repaired"
