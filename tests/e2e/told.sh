#!/usr/bin/env bash
# a person hears of it: one message per cause and state, with nodes and command, within 60 s; acknowledged ones are quiet; nights re-image again and again
# stands on: cli/{notify_verb,rollout}* controller/api/{admin_api,nodes_api}* controller/bringup/{current,nodes_view}* controller/causes
# stands on: controller/engines/local_engine* controller/image/service controller/metrics controller/notices controller/ports/{power,run_ports,store}*
# stands on: controller/power/redfish* controller/power/service/power_service* controller/rollout controller/spec/notify_spec*
# stands on: controller/spec/reader/{reader_notify,reader_rollout}* lab/{fault,outages,rack}* playbooks/base.yaml playbooks/firewall.yaml
# stands on: playbooks/monitoring.yaml playbooks/ssh.yaml playbooks/storage-local.yaml systemd/muster-rollout.service
# stands on: systemd/muster-rollout-failed.service systemd/rollout-failed
source "$(dirname "$0")/lib.sh"
for tool in python3 prometheus unshare nsenter systemctl systemd-analyze; do command -v $tool >/dev/null || die "there is no $tool here: scripts/deps.sh test"; done
books="base, ssh, firewall, storage-local"
port=8099                     # of the receiver of notices
scraper=127.0.0.1:9090
mkdir "$work/site"
# Each build of the image differs from the one before, as with the packages of another day. A bad one fails where acceptance writes 16 MiB.
cat >"$work/site/mark.yaml" <<'END'
playbook: mark
help: marks each build of the image
steps:
  - { name: mark, phase: image, module: command, params: { argv: [ sh, -c, "date +%s%N >/etc/mark" ], creates: /etc/mark } }
END
bad() {  # bad none|acceptance
  printf 'playbook: bad\nhelp: breaks the image\nsteps:\n'
  case $1 in
    none) printf '  - { name: nothing, phase: image, module: file, params: { path: /etc/bad, content: "no\\n" } }\n' ;;
    acceptance) printf '  - { name: limit, phase: image, module: file, params: { path: /etc/systemd/system/muster-agent.service.d/limit.conf, content: "[Service]\\nLimitFSIZE=4M\\n" } }\n' ;;
  esac
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
spec() {  # spec none|acceptance [MORE-OF-THE-RECEIVER]
  bad "$1" >"$work/site/bad.yaml"
  cat >"$work/cluster.yaml" <<END
cluster: told
network:
  provisioning: { cidr: 10.20.0.0/24, dhcp: managed }
  bmc:          { cidr: 10.20.1.0/24 }
users:
  ops: { keys: [ "ssh-ed25519 LAB_SSH_KEY lab" ], sudo: true }
images:
  cpu: { recipe: debian-12, kernel: cloud, bake: [ $books, mark, bad ] }
nodes:
$(node 1 nightly leaf1 r1)
$(node 2 nightly leaf1 r2)
$(node 3 plain leaf1 r3)
$(node 4 plain leaf2 r3)
storage:
  scratch: { engine: local, disks: fast, level: raid0, fs: xfs, mount: /scratch }
roles:
  nightly: { playbooks: [ $books ] }
  plain:   { playbooks: [ $books ] }
acceptance: { profile: lab }
limits: { netboot: 10 min, boot: 6 min, trial: 20 min }
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
expected=()   # "STATE KIND" of each message so far
recorded() { jq -r '"\(.body.state) \(.body.kind)"' "$work/record"; }
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

# ---- a healthy cluster
spec none
lab_up
$muster lab exec -- python3 "$work/receiver.py" $port "$work/record" &
check "the receiver listens" wait_until 20 "$muster" lab exec -- curl -s -o /dev/null "http://127.0.0.1:$port/"
up first
nodes="node01 node02 node03 node04"
for n in $nodes; do check "$n is accepted" test "$(node_state "$n")" = accepted; done
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
# What fires is exactly this, as sorted lines "ALERT NODE", or "ALERT KIND" of a cause.
fires() {
  local found
  found=$(prom alerts | jq -r '.data.alerts[] | select(.state == "firing") | "\(.labels.alertname) \(.labels.node // .labels.kind // "")"' | sort) || return 1
  [[ $found == "$1" ]]
}
wait_until 90 in_service || { tail -n 5 "$work/prometheus.log" >&2; prom targets >&2 || true; die "Prometheus does not have the nodes' states"; }
echo "  ok: Prometheus has the nodes' states"
check "no alert fires" fires ""

# ---- a node is switched off behind muster's back
$muster lab power node04 off
check "node04 is silent" wait_until 180 silent node04
known=$(now)
told "node04 is off" "$known" begun node_silent \
  '.nodes == ["node04"] and .common == {} and .urgent and .open and .next == "muster power state node04" and (.cause | length) == 12 and .since != null'
$muster lab power node04 on
check "node04 reports again" wait_until 600 all_report node04
known=$(now)
told "node04 is on" "$known" over node_silent '.cause == $id and .nodes == ["node04"] and .open == false'

# ---- three nodes behind one switch lose their cables, together
cables() {  # cables [--heal]
  local n jobs=()
  for n in node01 node02 node03; do $muster lab break $n pull-cable "$@" & jobs+=($!); done
  for n in "${jobs[@]}"; do wait "$n"; done
}
cables
check "all three are silent" wait_until 180 all_silent node01 node02 node03
known=$(now)
told "leaf1 is down" "$known" begun node_silent \
  '.nodes == ["node01", "node02", "node03"] and .common == {"switch": "leaf1"} and (.title | contains("leaf1")) and .next == "muster power state node[01-03]"'
check "its healthy neighbour is not in it" all_report node04
cables --heal
check "they report again" wait_until 300 all_report node01 node02 node03
known=$(now)
told "leaf1 is back" "$known" over node_silent '.cause == $id and .open == false'

# ---- a known cause, acknowledged before its message: none, for as long as the alert takes
of_node04() { $muster notify --json | jq -r '.causes[] | select(.nodes == ["node04"]) | .cause'; }
is_open() { [[ -n $(of_node04) ]]; }
gone() { ! is_open; }
acknowledged() { $muster notify --json | jq -e '.causes[] | select(.nodes == ["node04"]) | .acknowledged.reason == "PSU on order" and .known == false' >/dev/null; }
$muster lab break node04 kill
check "node04 is an open cause" wait_until 180 is_open
$muster ack "$(of_node04)" --reason 'PSU on order'
check "it is acknowledged, before any message" acknowledged
check "the alerts of the silent node and its cause fire, and no other" wait_until 600 fires $'MusterCause node_silent\nMusterNodeSilent node04'
check "it is acknowledged all that time" acknowledged
$muster lab power node04 on
check "node04 reports" wait_until 600 all_report node04
check "the cause is over" wait_until 30 gone
check "so are the alerts" wait_until 120 fires ""
# Whatever else was sent meanwhile is before the next message in the record.

# ---- two nights. musterd compares the image's age with its own clock: a day passes by making the image a day older.
on() { node_ssh "$@" | tr -d '\r'; }
image_of() { on "$1" cat /etc/muster/image.json | jq -r .digest; }
a_day_passes() {
  local record=$MUSTER_LAB_DIR/state/images/cpu/current/build.json at
  at=$(jq .built_at "$record")
  sed -i -E "s/(\"built_at\": *)$at\b/\1$((at - 24 * 3600 * 1000))/" "$record"
  check "the image is a day older" test "$(jq .built_at "$record")" = $((at - 24 * 3600 * 1000))
}
$muster rollout plan --json >"$work/plan.json"
check "the approval says that images are built daily" jq -e '.approval.rebuild == "daily"' "$work/plan.json"
$muster rollout approve --yes
standing=$(image_of node03)
declare -A image
for n in node01 node02; do image[$n]=$(image_of $n); done
for night in first second; do
  a_day_passes
  $muster rollout start --wait --json >"$work/night-$night.json" || { cat "$work/night-$night.json" >&2; die "the $night night"; }
  check "the $night night: its image was built" jq -e '[.builds[] | select(.image == "cpu" and .ended > 0 and .error == "")] | length == 1' "$work/night-$night.json"
  check "the $night night: both nodes were updated" jq -e '.last_window | .outcome == "done" and .updated == 2 and .failed == 0' "$work/night-$night.json"
  for n in node01 node02; do
    check "the $night night: $n is accepted" test "$(node_state $n)" = accepted
    now_image=$(image_of $n)
    check "the $night night: $n has another image" test "$now_image" != "${image[$n]}"
    image[$n]=$now_image
  done
  check "the $night night: both have the same one" test "${image[node01]}" = "${image[node02]}"
done
check "a node of another role was left alone" test "$(image_of node03)" = "$standing"

# ---- a bad night, as the timer's units carry it out: real units under a real systemd in namespaces of its own (tests/field/nights/systemd.sh),
# whose /usr/bin/muster is this one. The lab's machine itself need not run systemd. musterd.service stands in for the lab's musterd.
by_the_units() (  # in a shell of its own: whatever ends it ends its systemd
  WORK=$work/units-of-the-night SRC=$PWD
  this=$(realpath "$muster")
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
spec acceptance
up bad
$muster rollout approve --yes --canary node01
by_the_units
$muster rollout status --json >"$work/bad.json"
check "the canary's failure stopped the rollout" jq -e '.state == "stopped" and .stop == "canary-failed" and .last_window.outcome == "stopped"' "$work/bad.json"
told "a canary failed" "$(jq '.last_window.ended / 1000' "$work/bad.json")" begun rollout_stopped \
  '.nodes == ["node01"] and .urgent and .open and .next == "muster rollout status" and (.title | contains("cpu") and contains("node01"))'
check "the canary is back in its image" test "$(image_of node01)" = "${image[node01]}"
check "and reports" all_report node01
spec none
up good
$muster rollout approve --yes
known=$(now)
told "the rollout may go on" "$known" over rollout_stopped '.cause == $id and .open == false'

# ---- the morning line. Its time is the controller host's: the spec has no `time_zone`.
morning=$(($(date +%s) / 60 * 60 + 300))
spec none ", daily: \"$(env -u TZ date -d "@$morning" +%H:%M)\""
up morning
check "the spec was stored before the line's time" test "$(date +%s)" -lt $morning
too_early=$((morning - $(date +%s)))
check "the line's time comes" wait_until $((too_early + 60)) has_lines $((${#expected[@]} + 1))
told "the morning line" $morning daily daily '.cause == "" and .open == false and (.what | contains("night")) and .next == "muster status"'
check "it was not before its time" jq -se --argjson morning $morning '.[-1].at >= $morning' "$work/record"

# ---- and nothing else
sleep 45   # what is not settled after 30 s, and the turn after that
[[ $(recorded) == "$(printf '%s\n' "${expected[@]}")" ]] || wrong_record "something else was sent"
echo "  ok: nothing else was sent"
check "each message has an id of its own" jq -se '(map(.body.id) | unique | length) == length' "$work/record"
check "nothing waits, nothing was lost, nothing is open" sh -c "$muster notify --json | jq -e '.waiting == 0 and .lost == 0 and .causes == []' >/dev/null"
