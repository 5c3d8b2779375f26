#!/usr/bin/env bash
# a node is re-imaged in place while its job runs: one reboot, no network boot, data as it was; rolled back; re-imaged through RAM; `up` leaves it alone
# stands on: agent/* agent/steps/{accounts,command,step_modules,two_phase,wait_for}*
# stands on: agent/steps/files/directory* agent/steps/packages/package*
# stands on: agent/steps/{disk,services,system} agent/storage/{nfs,storage_state}* agent/{boot,core,disk,facts,image,joining,link,measuring,work} base
# stands on: cli controller/* controller/engines/{engine,local_engine,nfs_engine}* controller/hosts/hosts_spec*
# stands on: controller/options controller/ports/{power,run_ports,store}* controller/power/redfish* controller/power/service/power_service*
# stands on: controller/rollout/service controller/{api,boot,bringup,current,executor,image,link,nodes,plan,run,spec,store} host
# stands on: playbooks/accounting.yaml playbooks/base.yaml playbooks/firewall.yaml playbooks/mpi.yaml playbooks/scheduler.yaml playbooks/ssh.yaml
# stands on: playbooks/storage-local.yaml playbooks/storage-nfs.yaml sys
source "$(dirname "$0")/lib.sh"
playbooks="base, ssh, firewall, storage-local, storage-nfs, mpi, accounting, scheduler"
macs='"52:54:00:20:00:01", "52:54:00:20:00:02"'
# `spare` is an undeclared drive: a whole device to compare by its hash.
spec_from_quickstart \
  -e "s/node\[01-03\]/node[01-02]/; s/mac: \[.*\]/mac: [ $macs ]/" -e '/^ *bulk:/d; /name: bulk/d' \
  -e "s/bake: \[.*\]/bake: [ $playbooks ]/; s/playbooks: \[.*\]/playbooks: [ $playbooks ]/" \
  -e 's/^      fast: .*/&\n      home: { match: { serial: "LABHOME*", size: 1 GiB, count: 1 }, policy: format-if-blank }/' \
  -e 's/^  shared: .*/  home: { engine: nfs, server: node01, disks: home, mount: \/home\/shared }/' \
  -e 's/^    - { name: fast, .*/&\n    - { name: home, size: 1 GiB, serial_prefix: LABHOME }\n    - { name: spare, size: 64 MiB, serial_prefix: SPARE }/' \
  -e 's/^limits: .*/limits: { netboot: 10 min, boot: 10 min, trial: 15 min, drain_timeout: 15 min }/'
lab_up
$muster up "$work/cluster.yaml" --yes --report "$work/report" | tee "$work/up.log"
for n in node01 node02; do check "$n is accepted" test "$(node_state $n)" = accepted; done

on() { node_ssh "$@" | tr -d '\r'; }
boot_id() { on "$1" cat /proc/sys/kernel/random/boot_id; }
slot() { on "$1" sed -n "'s/.*muster.slot=\\([ab]\\).*/\\1/p'" /proc/cmdline; }
image_of() { on "$1" cat /etc/muster/image.json | jq -r .digest; }
data() { on node02 sudo sh -c "'sha256sum /scratch/blob /home/shared/blob; cat /dev/disk/by-id/nvme-*SPARE* | sha256sum'"; }
same_data() { data | diff - "$work/data"; }
last_run() { journal "select max(id) from run"; }
netboots() { journal "select count(*) from journal where run = $1 and node = '$2' and event = 'intent' and (action = '$2/netboot' or json_extract(data, '\$.with_netboot'))"; }
cycles() { grep -c " $1 .*ResetType" "$MUSTER_LAB_DIR/bmc.log" || true; }
# All that the controller sends over the provisioning network: the nodes' own traffic does not pass it.
sent_bytes() { $muster lab exec -- ip -s -j link show br0 | jq '.[0].stats64.tx.bytes'; }

on node02 sudo sh -c "'dd if=/dev/urandom of=/scratch/blob bs=1M count=8; dd if=/dev/urandom of=/home/shared/blob bs=1M count=4 conv=fsync
  dd if=/dev/urandom of=\$(ls /dev/disk/by-id/nvme-*SPARE* | head -n 1) bs=1M conv=fsync; sync' 2>/dev/null" || true
data >"$work/data"
first=$(image_of node02)
standing=$(slot node02)
check "node02 runs a slot of muster's" test -n "$standing"

# ---- an image that was built again changes no accepted node
$muster image build cpu --rebuild | tee "$work/build.log"
second=$($muster image list --json | jq -r '.images[]? // .[] | select(.name == "cpu") | .digest' | head -n 1)
check "the image is another build" test "$second" != "$first" -a -n "$second"
before=$(boot_id node01)$(boot_id node02)
$muster up "$work/cluster.yaml" --yes --report "$work/report" | tee "$work/older.log"
check "up re-images no node" test "$(boot_id node01)$(boot_id node02)" = "$before"
check "and says what to type" grep -q 'muster reimage' "$work/older.log"

# ---- in place: the job on node02 goes on while the image is written, and node01's is never disturbed
on node01 sudo sh -c "'install -d -o mpi /home/shared/jobs'" || true
submit() { on node01 sudo runuser -u mpi -- sbatch --parsable -w "$1" --chdir=/tmp --output=/tmp/job-%j.log --wrap "'$2'"; }
# shellcheck disable=SC2016  # for the node's shell
other=$(submit node01 'for i in $(seq 600); do date +%s >> /home/shared/jobs/node01; sleep 1; done')
own=$(submit node02 'while [ ! -e /home/shared/jobs/end ]; do date +%s >> /home/shared/jobs/node02; sleep 1; done')
job() { on node01 squeue -h -j "$1" -o %T 2>/dev/null; }
is_running() { [[ $(job "$1") == RUNNING ]]; }
check "both jobs run" wait_until 90 is_running "$own"
check "both jobs run" wait_until 90 is_running "$other"
# Slurm counts a job as running before its script has begun.
check "and write" wait_until 90 on node01 sudo test -s /home/shared/jobs/node01 -a -s /home/shared/jobs/node02
cycles_before=$(cycles node02) boots_before=$(firmware_boots node02) boot2=$(boot_id node02) boot1=$(boot_id node01)
$muster plan --kind reimage --limit node02 | tee "$work/plan.log"
check "the plan says that it goes in place" grep -q 'in place' "$work/plan.log"
began=$(on node01 date +%s)
$muster reimage node02 --yes --report "$work/report-in-place" >"$work/reimage.log" 2>&1 &
up=$!
written() { [[ $(journal "select count(*) from journal where action = 'node02/write' and event = 'succeeded' and run = (select max(id) from run)") -eq 1 ]]; }
during_up "the image is written" written
check "while its job runs" is_running "$own"
paused() { on node01 sinfo -h -n node02 -o "'%T %E'" | grep -q 'drain.*muster'; }
during_up "then Slurm drains the node, with muster's reason" paused
check "its job is waited for" is_running "$own"
sent_before=$(sent_bytes)
on node01 sudo touch /home/shared/jobs/end
up_ends 0
run=$(last_run)
check "node02 is accepted" test "$(node_state node02)" = accepted
check "it runs the new image" test "$(image_of node02)" = "$second"
check "from the other slot" test "$(slot node02)" != "$standing"
check "one reboot" test "$(( $(firmware_boots node02) - boots_before ))" -le 1 -a "$(boot_id node02)" != "$boot2"
check "no network boot" test "$(netboots "$run" node02)" = 0
check "and its BMC was not used" test "$(cycles node02)" = "$cycles_before"
check "write came before the jobs had to leave" \
  test "$(journal "select (select max(seq) from journal where run = $run and action = 'node02/write' and event = 'succeeded')
                        < (select min(seq) from journal where run = $run and action = 'node02/pause' and event = 'intent')")" = 1
# What leaves the controller for node02 between the end of its jobs and its acceptance is no image: less than a tenth of the frames.
stored=$($muster image list --json | jq '.images[]? // .[] | select(.name == "cpu") | .stored_bytes' | head -n 1)
sent=$(($(sent_bytes) - sent_before))
echo "  $sent bytes were sent to node02 after its jobs had ended; the image has $stored"
check "image bytes after that: none" test "$sent" -lt $((stored / 10))
check "its data is as it was" same_data
check "node01 was not rebooted" test "$(boot_id node01)" = "$boot1"
check "its job ran all the time" is_running "$other"
# A line each second: from before the re-image until now, without a gap.
wrote_all_the_time() {
  local now
  on node01 cat /home/shared/jobs/node01 >"$work/beats" && now=$(on node01 date +%s) || return 1
  awk -v began="$began" -v now="$now" '
    NR == 1 { first = $1 }
    NR > 1 && $1 - last > 20 { print "  gap of", $1 - last, "s"; gaps++ }
    { last = $1 }
    END {
      printf "  %d lines, first %d s before the re-image, last %d s ago\n", NR, began - first, now - last
      exit !(NR > 60 && first <= began && now - last <= 20 && !gaps)
    }' "$work/beats"
}
check "and wrote all the time" wrote_all_the_time
check "its job ended" test -z "$(job "$own")"
idle() { on node01 sinfo -h -n node02 -o %T | grep -qE 'idle|mixed|alloc'; }
check "node02 takes jobs again" wait_until 90 idle
check "the trial's timer does not run any more" fails_on node02 "systemctl is-active --quiet muster-trial.timer"
stands() { on node02 sudo sh -c "'mount /boot/efi && cat /boot/efi/loader/loader.conf; umount /boot/efi'" | sed -n 's/^default muster-\(.\).conf/\1/p'; }
check "the loader starts the new slot from now on" test "$(stands)" = "$(slot node02)"

# ---- back
boot2=$(boot_id node02)
$muster rollback node02 --yes --report "$work/report-rollback" | tee "$work/rollback.log"
check "node02 is accepted" test "$(node_state node02)" = accepted
check "it runs the image from before" test "$(image_of node02)" = "$first"
check "from the slot from before" test "$(slot node02)" = "$standing"
check "by a reboot" test "$(boot_id node02)" != "$boot2"
check "no network boot" test "$(netboots "$(last_run)" node02)" = 0
check "its data is as it was" same_data

# ---- the same frames again, through the RAM system
$muster reimage node02 --through-ram --yes --report "$work/report-ram" | tee "$work/ram.log"
check "node02 is accepted" test "$(node_state node02)" = accepted
check "it runs the new image" test "$(image_of node02)" = "$second"
check "a network boot" test "$(netboots "$(last_run)" node02)" -ge 1
result() { journal "select json_extract(data, '\$.result.$1') from journal where run = $(last_run) and action = 'node02/image' and event = 'succeeded'"; }
check "frames that were right were not fetched ($(result kept) kept, $(result fetched) fetched)" test "$(result kept)" -gt "$(result fetched)"
check "its data is as it was" same_data

# ---- and up has nothing to do with it
before=$(boot_id node01)$(boot_id node02)
$muster up "$work/cluster.yaml" --yes --report "$work/report" | tee "$work/last.log"
check "up re-images no node" test "$(boot_id node01)$(boot_id node02)" = "$before"

# ---- the leader: the queue, the accounting and the jobs of other nodes outlast its re-image
pending() { [[ $(job "$1") == PENDING ]]; }
state_of() { on node01 sudo sacct -D -X -n -P -o State -j "$1"; }   # a line per start
completed() { [[ $(state_of "$1") == COMPLETED ]]; }
held=$(on node01 sudo runuser -u mpi -- sbatch --parsable --hold --chdir=/tmp --wrap "'true'")
last=$(submit node02 'while [ ! -e /tmp/end ]; do sleep 1; done')
check "a job runs on node02" wait_until 90 is_running "$last"
check "another one is held" pending "$held"
check "the accounting has an earlier one" completed "$own"
boot1=$(boot_id node01) boot2=$(boot_id node02)
$muster reimage node01 --force node01 --yes --report "$work/report-leader" | tee "$work/leader.log"
check "the leader is accepted" test "$(node_state node01)" = accepted
check "it runs the new image" test "$(image_of node01)" = "$second" -a "$(boot_id node01)" != "$boot1"
check "the held job is still in the queue" wait_until 90 pending "$held"
check "the job on node02 still runs" is_running "$last"
check "node02 was not rebooted" test "$(boot_id node02)" = "$boot2"
on node02 sudo touch /tmp/end
check "it completes, and was started once" wait_until 120 completed "$last"
check "the accounting has the earlier one" completed "$own"
