#!/usr/bin/env bash
# a person hears of it: one message per cause and state, with nodes and command, within 60 s; acknowledged ones are quiet; nights re-image again and again
# stands on: agent/steps/not_applicable* agent/steps/system/slot*
# stands on: cli/{notify_verb,rollout}* controller/api/{admin_api,nodes_api}* controller/bringup/{current,nodes_view}* controller/causes
# stands on: controller/engines/local_engine* controller/image/service controller/metrics controller/notices controller/ports/{power,run_ports,store}*
# stands on: controller/power/redfish* controller/power/service/power_service* controller/rollout controller/spec/notify_spec*
# stands on: controller/spec/reader/{reader_notify,reader_rollout}* lab/{fault,outages,rack}* playbooks/base.yaml
# stands on: playbooks/ssh.yaml playbooks/storage-local.yaml systemd/muster-rollout.service systemd/muster-rollout-failed.service
# stands on: systemd/rollout-failed
# weakened by: TOLD_STAGES TOLD_KEPT
#
# TOLD_STAGES: only these, of "cables power nights bad-night morning". TOLD_KEPT=FOLDER: with the lab that MUSTER_E2E_KEEP left there. So one that
# failed in its nights goes on with: TOLD_KEPT=FOLDER TOLD_STAGES="nights bad-night morning" MUSTER_E2E_KEEP=yes tests/e2e/told.sh
kept_work=${TOLD_KEPT:-}
source "$(dirname "$0")/lib.sh"
for tool in python3 prometheus unshare nsenter systemctl systemd-analyze; do command -v $tool >/dev/null || die "there is no $tool here: scripts/deps.sh test"; done
stages=${TOLD_STAGES:-cables power nights bad-night morning}
books="base, ssh, storage-local"
port=8099                     # of the receiver of notices
scraper=127.0.0.1:9090
mkdir -p "$work/site"
# Each build of the image differs from the one before, as with the packages of another day. A bad one fails where acceptance writes 16 MiB. Both
# are in one layer, so that the bad one is built over the Debian of the one before.
mark() {  # mark none|acceptance
  printf 'playbook: mark\nhelp: marks each build of the image\nsteps:\n'
  printf '  - { name: mark, phase: image, module: command, params: { argv: [ sh, -c, "date +%%s%%N >/etc/mark" ], creates: /etc/mark } }\n'
  [[ $1 != acceptance ]] || cat <<'END'
  - { name: limit, phase: image, module: file, params: { path: /etc/systemd/system/muster-agent.service.d/limit.conf, content: "[Service]\nLimitFSIZE=4M\n" } }
END
}
node() {  # node NUMBER ROLE SWITCH RACK
  cat <<END
  - name: node0$1
    role: $2
    switch: $3
    rack: $4
    power: { driver: redfish, address: "10.20.1.1$1", secret: bmc }
    mac: "52:54:00:20:00:0$1"
    image: cpu
    disks:
      os:   { match: { serial: "LABOS*", size: 8 GiB, count: 1 }, policy: format-if-blank }
      fast: { match: { serial: "LABFAST*", size: 2 GiB, count: 2 }, policy: format-if-blank }
END
}
# Four machines are the fewest: three behind one switch, and one that shows that it is the switch. One of them is enough for nights.
spec() {  # spec none|acceptance [MORE-OF-THE-RECEIVER]
  mark "$1" >"$work/site/mark.yaml"
  cat >"$work/cluster.yaml" <<END
cluster: told
network:
  provisioning: { cidr: 10.20.0.0/24, dhcp: managed }
  bmc:          { cidr: 10.20.1.0/24 }
users:
  ops: { keys: [ "ssh-ed25519 LAB_SSH_KEY lab" ], sudo: true }
images:
  cpu: { recipe: debian-12, kernel: cloud, bake: [ $books, mark ] }
nodes:
$(node 1 nightly leaf1 r1)
$(node 2 plain leaf1 r2)
$(node 3 plain leaf1 r3)
$(node 4 plain leaf2 r3)
storage:
  scratch: { engine: local, disks: fast, level: raid0, fs: xfs, mount: /scratch }
roles:
  nightly: { playbooks: [ $books ] }
  plain:   { playbooks: [ $books ] }
acceptance: { profile: lab }
limits: { netboot: 10 min, boot: 10 min, trial: 20 min }
rollout: { rebuild: daily, roles: [ nightly ], window: 4 h }
notify:
  receivers:
    recorder: { webhook: { url: "http://127.0.0.1:$port/notices" }${2:-} }
playbooks: [ site ]
lab:
  memory_mib: 2048
  drives:
    - { name: os,   size: 8 GiB, serial_prefix: LABOS }
    - { name: fast, size: 2 GiB, serial_prefix: LABFAST, count: 2 }
END
}
up() {  # up NAME: exit 0
  $muster up "$work/cluster.yaml" --yes --report "$work/report" >"$work/up-$1.log" || { cat "$work/up-$1.log" >&2; die "up ($1)"; }
}

# ---- the record: one line of JSON for each message, with the time at which it came
touch "$work/record"
cat >"$work/receiver.py" <<'END'
import http.server, json, sys, time

class Receiver(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        line = {"at": time.time(), "path": self.path, "key": self.headers["Idempotency-Key"], "body": json.loads(body)}
        with open(sys.argv[2], "a", encoding="utf-8") as record:
            record.write(json.dumps(line) + "\n")
        self.send_response(204)
        self.end_headers()

    def log_message(self, *_):
        pass

http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Receiver).serve_forever()
END
recorded() { jq -r '"\(.body.state) \(.body.kind)"' "$work/record"; }
mapfile -t expected < <(recorded)   # "STATE KIND" of each message so far
# A message more or less than expected, or another one.
wrong_record() {  # wrong_record WHAT
  {
    echo "--- expected:"; printf '  %s\n' "${expected[@]}"
    echo "--- recorded:"; jq -r '"  \(.at | floor | todate) \(.body.state) \(.body.kind) \(.body.nodes | join(",")): \(.body.title) | \(.body.next)"' "$work/record"
    echo "--- open:"; $muster notify || true
  } >&2
  die "$1"
}
has_lines() { [[ $(wc -l <"$work/record") -ge $1 ]]; }
# The next message is this one, and came within 60 s after the controller knew. Sets `cause`.
told() {  # told WHAT KNOWN STATE KIND JQ-CONDITION-ON-ITS-BODY
  local what=$1 known=$2 line
  expected+=("$3 $4")
  wait_until 120 has_lines ${#expected[@]} || wrong_record "$what: there was no message"
  line=$(sed -n "${#expected[@]}p" "$work/record")
  [[ $(recorded) == "$(printf '%s\n' "${expected[@]}")" ]] || wrong_record "$what: another message, or more than one"
  jq -e --argjson known "$known" --arg id "${cause:-}" \
    ".at - \$known <= 60 and .path == \"/notices\" and .key == .body.id and .body.version == 1 and .body.cluster == \"told\" and (.body | $5)" \
    <<<"$line" >/dev/null || { echo "known: $known; $line" >&2; wrong_record "$what: not as it should be, or too late"; }
  cause=$(jq -r .body.cause <<<"$line")
  note_accelerator
  echo "  ok: $what, $(jq -r --argjson known "$known" '.at - $known | round' <<<"$line") s after the controller knew"
}
now() { date +%s.%N; }
silent() { node_is "$1" '.silent_since > 0'; }
all_silent() { local n; for n in "$@"; do silent "$n" || return 1; done; }
all_report() {
  local n
  for n in "$@"; do node_is "$n" '.state == "accepted" and (.silent_since // 0) == 0' || return 1; done
}
on() { node_ssh "$@" | tr -d '\r'; }
image_of() { on "$1" cat /etc/muster/image.json | jq -r .digest; }

# ---- a healthy cluster
spec none
lab_up
$muster lab exec -- python3 "$work/receiver.py" $port "$work/record" &
check "the receiver listens" wait_until 20 "$muster" lab exec -- curl -s -o /dev/null "http://127.0.0.1:$port/"
up first
for n in node01 node02 node03 node04; do check "$n is accepted" test "$(node_state "$n")" = accepted; done
known=$(now)
$muster notify test recorder
told "a test reaches the receiver" "$known" test test '.cause == "" and .open == false'

# ---- Prometheus, as of the package, with the rules that ship, at the operators' port
scripts/alert-rules.sh >"$work/rules.yml"
cat >"$work/prometheus.yml" <<END
global: { scrape_interval: 15s, evaluation_interval: 15s }
rule_files: [ $work/rules.yml ]
scrape_configs:
  - job_name: muster
    scheme: https
    authorization: { credentials_file: $MUSTER_LAB_DIR/state/operator-token }
    tls_config: { insecure_skip_verify: true }
    static_configs: [ { targets: [ "10.20.0.1:7443" ] } ]
END
$muster lab exec -- prometheus --config.file="$work/prometheus.yml" --storage.tsdb.path="$work/prometheus" --web.listen-address=$scraper \
  >"$work/prometheus.log" 2>&1 &
prom() { $muster lab exec -- curl -sfG -m 10 "http://$scraper/api/v1/$1" "${@:2}"; }
in_service() { prom query --data-urlencode 'query=muster_nodes{state="accepted"}' | jq -e '.data.result[0].value[1] == "4"' >/dev/null; }
alerts() { prom alerts | jq -r '.data.alerts[] | select(.state == "firing") | .labels.alertname' | sort -u; }
quiet() { local found; found=$(alerts) && [[ -z $found ]]; }
fires() { alerts | grep -qx "$1"; }
fires_no_more() { local found; found=$(alerts) && ! grep -qx "$1" <<<"$found"; }
wait_until 120 in_service || { tail -n 5 "$work/prometheus.log" >&2; prom targets >&2 || true; die "Prometheus does not have the nodes' states"; }
echo "  ok: Prometheus has the nodes' states"

# ---- three nodes behind one switch lose their cables, together
cables() {  # cables [--heal]
  local n jobs=()
  for n in node01 node02 node03; do $muster lab break $n pull-cable "$@" & jobs+=($!); done
  for n in "${jobs[@]}"; do wait "$n"; done
}
# An agent reports every 26 s or so, longer on a busy machine, and what begins within 30 s is one message. Here their last reports are near each
# other, and the next one is not due yet.
together() {
  $muster status --json | jq -e '.time as $now | [.nodes[] | select(.switch == "leaf1") | .last_seen] | max - min < 20000 and $now - min < 23000' >/dev/null
}
stage_cables() {
  wait_until 120 together || echo "  the last reports of these nodes are far apart"
  cables
  check "all three are silent" wait_until 180 all_silent node01 node02 node03
  known=$(now)
  told "leaf1 is down" "$known" begun node_silent \
    '.nodes == ["node01", "node02", "node03"] and .common == {"switch": "leaf1"} and .urgent and .open and (.title | contains("leaf1"))
     and .next == "muster power state node[01-03]"'
  check "its healthy neighbour is not in it" all_report node04
  cables --heal
  check "they report again" wait_until 300 all_report node01 node02 node03
  known=$(now)
  told "leaf1 is back" "$known" over node_silent '.cause == $id and .open == false'
}

# ---- a node is switched off behind muster's back, and another loses its power, which is known: acknowledged before its message, there is none
of_node02() { $muster notify --json | jq -r '.causes[] | select(.nodes == ["node02"]) | .cause'; }
is_open() { [[ -n $(of_node02) ]]; }
gone() { ! is_open; }
acknowledged() { $muster notify --json | jq -e '.causes[] | select(.nodes == ["node02"]) | .acknowledged.reason == "PSU on order" and .known == false' >/dev/null; }
stage_power() {
  $muster lab break node02 kill
  $muster lab power node04 off
  check "node02 is an open cause" wait_until 180 is_open
  $muster ack "$(of_node02)" --reason 'PSU on order'
  check "it is acknowledged, before any message" acknowledged
  check "node04 is silent" wait_until 180 silent node04
  known=$(now)
  told "node04 is off" "$known" begun node_silent \
    '.nodes == ["node04"] and .common == {} and .urgent and .open and .next == "muster power state node04" and (.cause | length) == 12 and .since != null'
  check "node02 is still acknowledged, without a message" acknowledged
  $muster lab power node04 on
  $muster lab power node02 on
  check "node04 reports again" wait_until 600 all_report node04
  known=$(now)
  told "node04 is on" "$known" over node_silent '.cause == $id and .nodes == ["node04"] and .open == false'
  check "node02 reports again" wait_until 600 all_report node02
  check "its cause is over" wait_until 30 gone
  # Whatever else was sent meanwhile is before the next message in the record.
}

# ---- two nights. musterd compares the image's age with its own clock: a day passes by making the image a day older.
a_day_passes() {
  local record=$MUSTER_LAB_DIR/state/images/cpu/current/build.json at
  at=$(jq .built_at "$record")
  sed -i -E "s/(\"built_at\": *)$at\b/\1$((at - 24 * 3600 * 1000))/" "$record"
  check "the image is a day older" test "$(jq .built_at "$record")" = $((at - 24 * 3600 * 1000))
}
stage_nights() {
  local night before after other
  $muster rollout plan --json >"$work/plan.json"
  check "the approval says that images are built daily" jq -e '.approval.rebuild == "daily"' "$work/plan.json"
  $muster rollout approve --yes
  other=$(image_of node03)
  before=$(image_of node01)
  for night in first second; do
    a_day_passes
    $muster rollout start --wait --json >"$work/night-$night.json" || { cat "$work/night-$night.json" >&2; die "the $night night"; }
    check "the $night night: its image was built" jq -e '[.builds[] | select(.image == "cpu" and .ended > 0 and .error == "")] | length == 1' "$work/night-$night.json"
    check "the $night night: the node was updated" jq -e '.last_window | .outcome == "done" and .updated == 1 and .failed == 0' "$work/night-$night.json"
    check "the $night night: node01 is accepted" test "$(node_state node01)" = accepted
    after=$(image_of node01)
    check "the $night night: node01 has another image" test "$after" != "$before"
    before=$after
  done
  check "a node of another role was left alone" test "$(image_of node03)" = "$other"
  check "no alert fires" quiet
}

# ---- a bad night, as the timer's units carry it out: real units under a real systemd in namespaces of its own (tests/field/nights/systemd.sh),
# whose /usr/bin/muster is this one. The lab's machine itself need not run systemd. musterd.service stands in for the lab's musterd.
by_the_units() (  # in a shell of its own: whatever ends it ends its systemd
  WORK=$work/units-of-the-night SRC=$PWD
  this=$(realpath "$muster")
  rm -rf "$WORK"   # of a kept lab
  mkdir "$WORK"
  # shellcheck source=tests/field/nights/systemd.sh
  source tests/field/nights/systemd.sh
  trap '[[ -z ${pid1:-} ]] || kill -KILL "$pid1" || true' EXIT
  printf '#!/bin/sh\nMUSTER_SOCKET=%s exec %s "$@"\n' "$MUSTER_SOCKET" "$this" >"$WORK/muster"
  # shellcheck disable=SC2016  # for the program that OnFailure= starts
  printf '#!/bin/sh\ncat >%s/text\necho "$MONITOR_UNIT $MONITOR_EXIT_STATUS" >>%s/failures\n' "$WORK" "$WORK" >"$WORK/rollout-failed"
  chmod +x "$WORK/muster" "$WORK/rollout-failed"
  mkdir "$WORK/units/muster-rollout-failed.service.d"
  printf '[Service]\nEnvironment=PATH=%s:/usr/sbin:/usr/bin:/sbin:/bin\n' "$WORK" >"$WORK/units/muster-rollout-failed.service.d/path.conf"
  boot
  check "the controller's unit runs" in_systemd systemctl start musterd.service
  fails() { ! "$@"; }
  check "the night's unit fails" fails in_systemd systemctl start muster-rollout.service
  check "it is failed" is muster-rollout.service ActiveState failed
  check "with the night's exit code" is muster-rollout.service ExecMainStatus 4
  ran() { grep -qsx "muster-rollout.service 4" "$WORK/failures"; }
  check "OnFailure= started the operator's program" wait_until 120 ran
  check "once" test "$(wc -l <"$WORK/failures")" = 1
  check "with the state of the rollout on its input" grep -q 'canary-failed' "$WORK/text"
)
stage_bad_night() {
  local before
  before=$(image_of node01)
  spec acceptance
  up bad
  $muster rollout approve --yes --canary node01
  by_the_units
  $muster rollout status --json >"$work/bad.json"
  check "the canary's failure stopped the rollout" jq -e '.state == "stopped" and .stop == "canary-failed" and .last_window.outcome == "stopped"' "$work/bad.json"
  told "a canary failed" "$(jq '.last_window.ended / 1000' "$work/bad.json")" begun rollout_stopped \
    '.nodes == ["node01"] and .urgent and .open and .next == "muster rollout status" and (.title | contains("cpu") and contains("node01"))'
  check "an alert fires" wait_until 60 fires MusterRolloutStopped
  check "the canary is back in its image" test "$(image_of node01)" = "$before"
  check "and reports" wait_until 120 all_report node01
  $muster rollout approve --yes   # permits another try
  known=$(now)
  told "the rollout may go on" "$known" over rollout_stopped '.cause == $id and .open == false'
  check "the alert fires no more" wait_until 60 fires_no_more MusterRolloutStopped
}

# ---- the morning line. Its time is the controller host's: the spec has no `time_zone`.
stage_morning() {
  local morning=$(($(date +%s) / 60 * 60 + 120))   # in one to two minutes
  spec acceptance ", daily: \"$(env -u TZ date -d "@$morning" +%H:%M)\""
  up morning
  check "the spec was stored before the line's time" test "$(date +%s)" -lt $morning
  check "the line's time comes" wait_until $((morning - $(date +%s) + 60)) has_lines $((${#expected[@]} + 1))
  told "the morning line" $morning daily daily '.cause == "" and .open == false and (.what | contains("night")) and .next == "muster status"'
  check "it was not before its time" jq -se --argjson morning $morning '.[-1].at >= $morning' "$work/record"
}

for stage in $stages; do
  echo "--- $stage (after $SECONDS s)"
  "stage_${stage//-/_}"
done

# ---- and nothing else
sleep 45   # what is not settled after 30 s, and the turn after that
[[ $(recorded) == "$(printf '%s\n' "${expected[@]}")" ]] || wrong_record "something else was sent"
echo "  ok: nothing else was sent"
check "each message has an id of its own" jq -se '(map(.body.id) | unique | length) == length' "$work/record"
check "nothing waits, nothing was lost, nothing is open" sh -c "$muster notify --json | jq -e '.waiting == 0 and .lost == 0 and .causes == []' >/dev/null"
