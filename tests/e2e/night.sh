#!/usr/bin/env bash
# a rollout over a cluster at work: no job is killed, storage serves all the time; a drain by an operator, a resume before the reboot, a GPU fewer
# stands on: agent/* agent/steps/{accounts,command,files/directory,not_applicable,packages/package,step_modules,two_phase,wait_for}*
# stands on: agent/steps/{disk,services,system} agent/storage/{moosefs,storage_state}* agent/{boot,core,disk,facts,image,joining,link,measuring,work}
# stands on: base cli controller/* controller/engines/{engine,local_engine,moosefs_engine}* controller/hosts/hosts_spec*
# stands on: controller/options controller/ports/{power,run_ports,store}* controller/power/redfish* controller/power/service/power_service*
# stands on: controller/{api,bringup,current,executor,image,link,nodes,plan,rollout,run,spec,store} host playbooks/accounting.yaml playbooks/base.yaml
# stands on: playbooks/firewall.yaml playbooks/scheduler.yaml playbooks/ssh.yaml playbooks/storage-local.yaml
# stands on: playbooks/storage-shared.yaml sys
source "$(dirname "$0")/lib.sh"
books="base, ssh, firewall, storage-local, storage-shared, accounting, scheduler"
mkdir "$work/site"
# What is different in the other image: one file, and that node06 has one GPU fewer there. The device files stand in for the driver's.
change() {  # change MARK
  cat >"$work/site/night.yaml" <<END
playbook: night
help: marks the image
steps:
  - { name: mark, phase: image, module: file, params: { path: /etc/night, content: "$1\\n" } }
  - { name: devices, phase: image, module: file, params: { path: /etc/tmpfiles.d/night.conf, content: "c /dev/nvidia0 0666 - - - 195:0\\nc /dev/nvidia1 0666 - - - 195:1\\n" } }
END
  [[ $1 != two ]] || cat >>"$work/site/night.yaml" <<'END'
  - name: a GPU fewer
    phase: image
    module: file
    params:
      path: /etc/systemd/system/slurmd.service.d/20-night.conf
      content: |
        [Service]
        ExecStartPre=/bin/sh -c 'grep -qx node06 /etc/hostname && sed -i s/.0-1.$$/0/ /etc/slurm/gres.conf || true'
END
}
node() {  # node NAME NUMBER ROLE [MORE-DISKS]
  cat <<END
  - name: $1
    role: $3
    power: { driver: redfish, address: "10.20.1.1$2", secret: bmc }
    mac: "52:54:00:20:00:0$2"
    image: cpu
    disks:
      os:   { match: { serial: "LABOS*", size: 8 GiB, count: 1 }, policy: format-if-blank }
      fast: { match: { serial: "LABFAST*", size: 2 GiB, count: 2 }, policy: format-if-blank }${4:-}
END
}
bulk='
      bulk: { match: { serial: "LABBULK*", size: 2 GiB, count: 1 }, policy: format-if-blank }'
spec() {  # spec MARK: cluster.yaml with an image that has it
  change "$1"
  cat >"$work/cluster.yaml" <<END
cluster: night
network:
  provisioning: { cidr: 10.20.0.0/24, dhcp: managed }
  bmc:          { cidr: 10.20.1.0/24 }
users:
  ops: { keys: [ "ssh-ed25519 LAB_SSH_KEY lab" ], sudo: true, uid: 2000 }
images:
  cpu: { recipe: debian-12, kernel: cloud, bake: [ $books, night ] }
nodes:
$(node node01 1 head "$bulk")
$(node node02 2 plain)
$(node node03 3 store "$bulk")
$(node node04 4 store "$bulk")
$(node node05 5 plain)
$(node node06 6 work)
storage:
  scratch: { engine: local, disks: fast, level: raid0, fs: xfs, mount: /scratch }
  shared:  { engine: moosefs, disks: bulk, server: node01, copies: 2, mount: /shared }
roles:
  head:  { playbooks: [ $books ], leads: [ scheduler ] }
  plain: { playbooks: [ $books ] }
  store: { playbooks: [ $books ] }
  work:  { playbooks: [ $books ] }
acceptance: { profile: lab }
limits: { netboot: 10 min, boot: 10 min, trial: 20 min, image_write_rate: 30 MB/s }
rollout: { roles: [ plain, store, work ], max_unavailable: 3, failure_budget: 1, window: 6 h, drain_timeout: 90 min }
playbooks: [ site ]
lab:
  memory_mib: 2048
  drives:
    - { name: os,   size: 8 GiB, serial_prefix: LABOS }
    - { name: fast, size: 2 GiB, serial_prefix: LABFAST, count: 2 }
    - { name: bulk, size: 2 GiB, serial_prefix: LABBULK }
  nodes:
    node06: { gpus: 2 }
END
}
spec one
lab_up
$muster up "$work/cluster.yaml" --yes --report "$work/report" | tail -n 5
nodes="node02 node03 node04 node05 node06"
for n in node01 $nodes; do check "$n is accepted" test "$(node_state $n)" = accepted; done

on() { node_ssh "$@" | tr -d '\r'; }
image_of() { on "$1" cat /etc/muster/image.json | jq -r .digest; }
boot_id() { on "$1" cat /proc/sys/kernel/random/boot_id; }
rollout() { $muster rollout "$@"; }
state() { $muster rollout status --json | jq -r .state; }
# The file system's identity and a file's hash.
scratch_of() { on "$1" sudo sh -c "'findmnt -no UUID /scratch; sha256sum /scratch/blob'"; }
for n in $nodes; do on "$n" sudo sh -c "'dd if=/dev/urandom of=/scratch/blob bs=1M count=8 2>/dev/null; sync'"; scratch_of "$n" >"$work/data-$n"; done

# ---- nothing without an approval
expect_exit 4 "$muster" rollout start 2>/dev/null
slurm_of() { on node01 sinfo -h -N -n "$1" -o "'%T|%E'"; }   # state|reason
scontrol() { on node01 sudo scontrol update nodename="$1" state="$2" ${3:+reason="'$3'"}; }
slurm_is() { [[ $(slurm_of "$1") == "$2" ]]; }
slowly() { sleep 5; "$@"; }   # each look is an ssh session
idle() { [[ $(slurm_of "$1") == idle* ]]; }
for n in $nodes; do check "$n takes jobs" wait_until 120 idle "$n"; done

# ---- an operator keeps node02 out, and the other image comes
scontrol node02 drain "RMA 123"
spec two
check "up with a node that an operator drained" $muster up "$work/cluster.yaml" --yes --report "$work/report"
check "leaves it drained, with the operator's reason" slurm_is node02 "drained|RMA 123"
$muster image build cpu | tail -n 1
rollout plan | tee "$work/plan.log"
rollout plan --json >"$work/plan.json"
rollout approve --yes

# ---- jobs that outlast a batch, and a writer on the shared storage
on node01 sudo sh -c "'install -d -o ops /shared/jobs'"
submit() { on node01 sbatch --parsable --no-requeue -w "$1" --chdir=/tmp --output=/tmp/job-%j.log --wrap "'$2'"; }
declare -A job before
working="node03 node04 node06"
for n in $working; do
  # The time after 30 of 150 lines, and after all: how much slower the job is beside the rollout. Each ends when the test says so: node06
  # is to be in a batch with a storage node, and to wait for its job, drained.
  # shellcheck disable=SC2016  # for the node's shell
  job[$n]=$(submit "$n" "began=\$(date +%s); for i in \$(seq 150); do seq \$i 20000 | sha256sum >/dev/null; echo \$i >>/shared/jobs/$n; sleep 1; [ \$i != 30 ] || echo \$((\$(date +%s) - began)) >/shared/jobs/$n.took; done; echo \$((\$(date +%s) - began)) >>/shared/jobs/$n.took; while [ ! -e /shared/jobs/go.$n ]; do sleep 1; done; sha256sum /shared/jobs/$n >/shared/jobs/$n.sum")
done
for n in $nodes; do before[$n]=$(boot_id "$n")/$(firmware_boots "$n")/$(image_of "$n"); done
# shellcheck disable=SC2016
writer=$(submit node01 'while [ ! -e /shared/jobs/stop ]; do now=$(date +%s); echo $now >>/shared/jobs/writer || echo bad >>/tmp/writer-bad; echo $now >>/tmp/writer; sleep 1; done')
# One line per start: a job that was killed and queued again has two.
completed() { [[ $(on node01 sudo sacct -D -X -n -P -o State -j "$1") == COMPLETED ]]; }
is_running() { [[ $(on node01 squeue -h -j "$1" -o %T 2>/dev/null) == RUNNING ]]; }
for j in "${job[@]}" "$writer"; do check "job $j runs" wait_until 120 is_running "$j"; done
for n in $working; do check "the job of $n has 30 lines" wait_until 600 on node01 test -s "/shared/jobs/$n.took"; done

# ---- the first night
start=$SECONDS
rollout start
rollout pause
check "it is paused, and its canary goes on" test "$(state)" = paused
expect_exit 4 "$muster" rollout start 2>/dev/null
rollout resume
check "the canary serves nothing and is idle" wait_until 60 sh -c "$muster rollout status --json | jq -e '.batch.canary and .batch.nodes == [\"node05\"]'"
(rollout start --wait --json >"$work/first.json"; echo $? >"$work/first.exit") &
first=$!
# node06 waits, drained, for the job of a storage node; an operator gives it back, and a job starts on it.
check "node06 is in a batch with a storage node" wait_until 3600 slowly sh -c "$muster rollout status --json | jq -e '.batch.nodes | length == 2 and index(\"node06\")' >/dev/null"
on node01 sudo touch /shared/jobs/go.node06
check "node06 is drained for its re-image" wait_until 3600 slowly slurm_is node06 "drained|muster reimage"
scontrol node06 resume
# shellcheck disable=SC2016
late=$(submit node06 'for i in $(seq 120); do echo $i >>/shared/jobs/late; sleep 1; done')
check "a job starts on it" wait_until 120 is_running "$late"
on node01 sudo touch /shared/jobs/go.node03 /shared/jobs/go.node04
wait $first
echo "  the first night took $((SECONDS - start)) s: exit $(cat "$work/first.exit")"
rollout status
check "nodes were updated, others have their turn in another night: exit 0" test "$(cat "$work/first.exit")" = 0
check "which the result of its window says" jq -e '.last_window | .outcome == "progress" and .updated == 3 and .failed == 0' "$work/first.json"
check "the operator's node waits, and is named" jq -e 'any(.left[]; .node == "node02" and .reason == "maintenance")' "$work/first.json"
check "it is as the operator left it" slurm_is node02 "drained|RMA 123"
check "node06 was given back" jq -e 'any(.postponed[]; .node == "node06")' "$work/first.json"
check "node06 was not rebooted" test "$(boot_id node06)" = "${before[node06]%%/*}"
check "its late job completes" wait_until 600 completed "$late"
updated="node03 node04 node05"

# ---- the second night
scontrol node02 resume
check "node02 takes jobs" wait_until 120 idle node02
check "node06 takes jobs" wait_until 300 idle node06
got=0
rollout start --wait --json >"$work/second.json" || got=$?
echo "  both nights took $((SECONDS - start)) s: exit $got"
rollout status
check "a node failed, within the budget: exit 3" test $got = 3
check "node06 registers with a GPU fewer: it returned, and is named" jq -e '[.failed[] | select(.returned) | .node] == ["node06"]' "$work/second.json"
check "node06 runs its old image" test "$(on node06 cat /etc/night)" = one
check "node06 is accepted" test "$(node_state node06)" = accepted
check "node06 takes jobs" wait_until 300 idle node06
updated="$updated node02"
for n in $updated; do
  check "$n is accepted" test "$(node_state "$n")" = accepted
  check "$n runs the new image" test "$(on "$n" cat /etc/night)" = two
  IFS=/ read -r _ boots _ <<<"${before[$n]}"
  check "$n booted once" test $(($(firmware_boots "$n") - boots)) -le 1
  check "$n takes jobs" wait_until 300 idle "$n"
done
for n in $nodes; do check "$n: its data is as it was" test "$(scratch_of "$n")" = "$(cat "$work/data-$n")"; done
for n in $working; do
  check "$n: its job was started once, and completed" completed "${job[$n]}"
  check "$n: its job wrote all that it was to write" test "$(on node01 wc -l "</shared/jobs/$n")" = 150
  check "$n: with the right checksum" on node01 sha256sum -c --quiet "/shared/jobs/$n.sum"
  on node01 cat "/shared/jobs/$n.took" | awk -v node="$n" 'NR == 1 { alone = $1 / 30 } NR == 2 { beside = ($1 - alone * 30) / 120 }
    END { printf "  %s: a line of its job took %.1f s before the rollout and %.1f s beside it: %.2f times\n", node, alone, beside, beside / alone }'
done
check "the head was not touched" test "$(on node01 cat /etc/night)" = one
check "the storage's writer runs" is_running "$writer"
on node01 sudo touch /shared/jobs/stop
check "and completes" wait_until 120 completed "$writer"
check "it saw no error" fails_on node01 "test -e /tmp/writer-bad"
check "and what it wrote is there" on node01 sudo cmp /shared/jobs/writer /tmp/writer
check "nor a gap of more than a minute" on node01 awk "'NR > 1 && \$1 - last > 60 { bad++ } { last = \$1 } END { exit bad > 0 }'" /shared/jobs/writer
rollout report | tee "$work/report.log"
check "the report has the phases of each node" sh -c "$muster rollout report --json | jq -e '[.nodes[] | select((.phases | length) > 3)] | length >= 4'"
