#!/usr/bin/env bash
# images that fail acceptance and that panic: the canary is back by itself, the rollout stops, others are untouched, the next start says why not
# stands on: agent/* agent/steps/system agent/steps/{accounts,command,not_applicable,step_modules,two_phase}*
# stands on: agent/storage/storage_state* agent/{boot,core,disk,facts,image,joining,link,measuring,work} controller/engines/local_engine*
# stands on: controller/hosts/hosts_spec* controller/ports/{power,run_ports}* controller/power/redfish* controller/power/service/power_service*
# stands on: controller/spec/hardware* controller/{bringup,current,executor,image,plan,rollout,run} playbooks/base.yaml playbooks/firewall.yaml
# stands on: playbooks/ssh.yaml playbooks/storage-local.yaml
# weakened by: BAD_NIGHTS
source "$(dirname "$0")/lib.sh"
source tests/e2e/labs/small.sh
cases=${BAD_NIGHTS:-acceptance panic}
playbooks="base, ssh, firewall, storage-local"
mkdir "$work/site"
bad() {  # bad WHAT
  printf 'playbook: bad\nhelp: breaks the image\nsteps:\n'
  case $1 in
    none) printf '  - { name: nothing, phase: image, module: file, params: { path: /etc/bad, content: "no\\n" } }\n' ;;
    panic) printf '  - { name: init, phase: image, module: file, params: { path: /usr/lib/systemd/systemd, mode: "0755", content: "no program\\n" } }\n' ;;
    # 16 MiB are written where acceptance measures local storage.
    acceptance) printf '  - { name: limit, phase: image, module: file, params: { path: /etc/systemd/system/muster-agent.service.d/limit.conf, content: "[Service]\\nLimitFSIZE=4M\\n" } }\n' ;;
  esac
}
small_spec 2 's/^limits: .*/limits: { netboot: 10 min, boot: 6 min, trial: 20 min }/' "s/bake: \[.*\] }/bake: [ $playbooks, bad ] }/" >"$work/base.yaml"
printf 'acceptance: { profile: lab }\nplaybooks: [ site ]\nrollout: { roles: [ cpu ], window: 4 h }\n' >>"$work/base.yaml"
spec() { bad "$1" >"$work/site/bad.yaml"; cp "$work/base.yaml" "$work/cluster.yaml"; }
spec none
shared_lab small
for n in node01 node02; do check "$n is accepted" test "$(node_state $n)" = accepted; done
on() { node_ssh "$@" | tr -d '\r'; }
image_of() { on "$1" cat /etc/muster/image.json | jq -r .digest; }
boot_id() { on "$1" cat /proc/sys/kernel/random/boot_id; }
good=$(image_of node01)
for what in $cases; do
  echo "--- an image that is bad by: $what"
  spec "$what"
  $muster up "$work/cluster.yaml" --yes --report "$work/report" >"$work/up-$what.log" || { cat "$work/up-$what.log" >&2; die "up with the spec of $what"; }
  $muster image build cpu | tail -n 1
  other=$(boot_id node02)
  expect_exit 4 "$muster" rollout start 2>/dev/null   # nothing is approved for this revision
  $muster rollout approve --yes --canary node01 >/dev/null   # also behind a failure
  got=0
  $muster rollout start --wait --json >"$work/night-$what.json" || got=$?
  check "$what: the rollout ends with exit 4" test $got = 4
  check "$what: the canary's failure stopped it" jq -e '.state == "stopped" and .stop == "canary-failed"' "$work/night-$what.json"
  check "$what: the canary returned by itself" jq -e '.failed == [.failed[] | select(.node == "node01" and .returned)] and (.failed | length) == 1' "$work/night-$what.json"
  check "$what: node01 is accepted" test "$(node_state node01)" = accepted
  check "$what: and runs the old image" test "$(image_of node01)" = "$good"
  check "$what: node02 was not touched" test "$(boot_id node02)/$(image_of node02)" = "$other/$good"
  expect_exit 4 "$muster" rollout start 2>"$work/next-$what.log"
  cat "$work/next-$what.log"
  check "$what: the next start says why it does not" grep -q 'canary' "$work/next-$what.log"
  check "$what: and began nothing" test "$(boot_id node02)" = "$other"
done
