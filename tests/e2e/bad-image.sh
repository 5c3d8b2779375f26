#!/usr/bin/env bash
# images that panic, hang in the initrd, drop to emergency mode, have no agent, fail a verify, fail acceptance: each time the node is back in its old slot
# stands on: agent/* agent/steps/system agent/steps/{accounts,command,step_modules,two_phase}*
# stands on: agent/storage/storage_state* agent/{boot,core,disk,facts,image,joining,link,measuring,work} controller/engines/local_engine*
# stands on: controller/hosts/hosts_spec* controller/ports/{power,run_ports}* controller/power/redfish* controller/power/service/power_service*
# stands on: controller/spec/hardware* controller/{executor,image,plan,run} playbooks/base.yaml playbooks/firewall.yaml playbooks/ssh.yaml
# stands on: playbooks/storage-local.yaml
# weakened by: BAD_IMAGES
source "$(dirname "$0")/lib.sh"
source tests/e2e/labs/small.sh
cases=${BAD_IMAGES:-emergency panic verify acceptance agentless hang}
playbooks="base, ssh, firewall, storage-local"
mkdir "$work/site"
# What is wrong with an image is baked into it, as a bad package would: a playbook of its own, which no node runs.
bad() {  # bad WHAT
  printf 'playbook: bad\nhelp: breaks the image\nsteps:\n'
  case $1 in
    none) printf '  - { name: nothing, phase: image, module: file, params: { path: /etc/bad, content: "no\\n" } }\n' ;;
    emergency) printf '  - { name: table, phase: image, module: file, params: { path: /etc/fstab, content: "/dev/disk/by-id/none /nowhere ext4 x-systemd.device-timeout=5s 0 2\\n" } }\n' ;;
    panic) printf '  - { name: init, phase: image, module: file, params: { path: /usr/lib/systemd/systemd, mode: "0755", content: "no program\\n" } }\n' ;;
    # What loads the rules takes them and does nothing: the step finds that they are not there. It is a link; the file replaces it.
    verify) printf '  - { name: rules, phase: image, module: file, params: { path: /usr/sbin/iptables-restore, mode: "0755", content: "#!/bin/sh\\ncat >/dev/null\\n" } }\n' ;;
    # 16 MiB are written where acceptance measures local storage.
    acceptance) printf '  - { name: limit, phase: image, module: file, params: { path: /etc/systemd/system/muster-agent.service.d/limit.conf, content: "[Service]\\nLimitFSIZE=4M\\n" } }\n' ;;
    agentless) printf '  - { name: agent, phase: image, module: file, params: { path: /etc/systemd/system/muster-agent.service.d/none.conf, content: "[Unit]\\nConditionPathExists=/nowhere\\n" } }\n' ;;
    # In the initrd the shell is busybox; this one waits for what the console types, for ever.
    hang) printf '  - { name: shell, phase: image, module: command, params: { argv: [ sh, -c, "cp /usr/bin/tee /usr/bin/busybox && : > /etc/bad" ], creates: /etc/bad } }\n' ;;
  esac
}
spec() {  # spec WHAT: cluster.yaml with that image
  local kernel=cloud trial="20 min"
  [[ $1 != hang ]] || kernel=full   # the only one with an initrd
  [[ $1 != agentless ]] || trial="3 min"   # longer than configuration and acceptance take, else the plan is refused
  bad "$1" >"$work/site/bad.yaml"
  sed -e "s/kernel: cloud/kernel: $kernel/" -e "s/trial: 20 min/trial: $trial/" "$work/base.yaml" >"$work/cluster.yaml"
}
small_spec 1 's/^limits: .*/limits: { netboot: 10 min, boot: 4 min, trial: 20 min }/' "s/bake: \[.*\] }/bake: [ $playbooks, bad ] }/" >"$work/base.yaml"
printf 'acceptance: { profile: lab }\nplaybooks: [ site ]\n' >>"$work/base.yaml"
spec none
shared_lab small
check "node01 is accepted" test "$(node_state node01)" = accepted
on() { node_ssh node01 "$@" | tr -d '\r'; }
slot() { on sed -n "'s/.*muster.slot=\\([ab]\\).*/\\1/p'" /proc/cmdline; }
image_of() { on cat /etc/muster/image.json | jq -r .digest; }
logs_in() { node_ssh node01 true 2>/dev/null; }
cycles() { grep " node01 " "$MUSTER_LAB_DIR/bmc.log" | grep -c ResetType || true; }
on sudo sh -c "'dd if=/dev/urandom of=/scratch/blob bs=1M count=4 2>/dev/null; sync; sha256sum /scratch/blob'" >"$work/data"
standing=$(slot) good=$(image_of)

# What the reason has to name, for each. A Redfish BMC has no console that muster reads, so nothing names a panic; what ended those boots
# shows in how long they took: the timer of all but `agentless` is longer than the wait for the BMC.
trial_ended='trial of slot [ab] ended'
declare -A names=([emergency]=$trial_ended [panic]=$trial_ended [verify]='firewall is not loaded' [acceptance]='local storage' [agentless]=$trial_ended [hang]='its power was cycled')
declare -A at_least=([agentless]=180) below=([emergency]=1200 [panic]=1200)   # seconds, as in the spec
# From the order to boot until the node was heard in another system than the one on trial, in seconds.
boot_took() {  # boot_took RUN
  journal "select (select min(time) from journal where run = $1 and action = 'node01/boot' and event in ('failed', 'abandoned')) / 1000
                - (select min(time) from journal where run = $1 and action = 'node01/boot' and event = 'intent') / 1000"
}
for what in $cases; do
  echo "--- an image that is bad by: $what"
  spec "$what"
  $muster up "$work/cluster.yaml" --yes --report "$work/report" >"$work/up-$what.log" || { cat "$work/up-$what.log" >&2; die "up with the spec of $what"; }
  check "up re-images no node" test "$(image_of)" = "$good"
  cycles_before=$(cycles)
  start=$SECONDS
  expect_exit 3 "$muster" reimage node01 --yes --report "$work/report-$what" >"$work/reimage-$what.log" 2>&1
  echo "  back after $((SECONDS - start)) s"
  run=$(journal "select max(id) from run")
  check "$what: node01 is accepted again" test "$(node_state node01)" = accepted
  check "$what: it can be logged in to" wait_until 120 logs_in
  check "$what: it runs the old slot" test "$(slot)" = "$standing"
  check "$what: and the old image" test "$(image_of)" = "$good"
  check "$what: the new one was booted" test "$(journal "select count(*) from journal where run = $run and action = 'node01/boot' and event = 'intent'")" = 1
  check "$what: the journal says that it returned" test "$(journal "select count(*) from journal where run = $run and node = 'node01' and event = 'returned'")" = 1
  $muster why node01
  # Its own reason: of a lab that bad-night had before, the text has another line, that the rollout of its image was stopped, and why.
  check "$what: why names the cause" grep -qE "${names[$what]}" <<<"$($muster why node01 --json | jq -r .reason)"
  check "$what: the report names it" grep -qE "${names[$what]}" "$work/report-$what/report.json"
  if [[ -n ${at_least[$what]:-}${below[$what]:-} ]]; then
    took=$(boot_took "$run")
    echo "  its trial was over after $took s"
    [[ -z ${at_least[$what]:-} ]] || check "$what: its timer ended it" test "$took" -ge "${at_least[$what]}"
    [[ -z ${below[$what]:-} ]] || check "$what: and nothing had to wait for a timer" test "$took" -lt "${below[$what]}"
  fi
  check "$what: its data is mounted" wait_until 300 on mountpoint -q /scratch
  check "$what: its data is as it was" sh -c "$muster lab ssh node01 -- sha256sum /scratch/blob | diff - '$work/data'"
  if [[ $what == hang ]]; then check "its BMC ended the hang" test "$(cycles)" -gt "$cycles_before"; else check "$what: without its BMC" test "$(cycles)" = "$cycles_before"; fi
done

# The same node takes a good one.
spec none
sed -i 's/"no\\n"/"still no\\n"/' "$work/site/bad.yaml"
$muster up "$work/cluster.yaml" --yes --report "$work/report" | tail -n 2
$muster reimage node01 --yes --report "$work/report-good" | tail -n 3
check "a good image is committed" test "$(node_state node01) $(slot)" = "accepted $([[ $standing == a ]] && echo b || echo a)"
check "it is the new one" test "$(on cat /etc/bad)" = "still no"
