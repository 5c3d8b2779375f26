# shellcheck shell=bash
# Shared by the end-to-end tests: one lab per test in a folder of its own, brought down however the test ends; or the lab of labs/NAME.sh, which
# stays up for the next test that has it. What shows why a test failed is kept in one folder, which the last line names: MUSTER_E2E_LOGS, else
# beside the lab's. MUSTER_E2E_KEEP=yes: the lab of a test that failed stays up.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
for tool in jq sqlite3 curl; do command -v "$tool" >/dev/null || { echo "$tool is missing: scripts/deps.sh test" >&2; exit 1; }; done

muster=${MUSTER_BUILD:-build}/muster   # musterd and the agent are those beside it
# kept_work: of a test that goes on with the lab that another run of it left.
work=${kept_work:-$(mktemp -d /var/tmp/muster-e2e.XXXXXX)}
logs=${MUSTER_E2E_LOGS:-$work-logs}
lab_home=${MUSTER_E2E_SHARED_LAB:-$work}   # what is in it beside lab/: shared_lab
export MUSTER_LAB_DIR=$lab_home/lab
export MUSTER_SOCKET=$MUSTER_LAB_DIR/musterd.sock
# A login costs an emulated machine 2 to 3 s: one connection to each stays open between commands, and is given up 15 s after the machine
# no longer answers. A test that counts logins, or needs each to be new, calls each_login_new.
export MUSTER_LAB_SSH_OPTIONS="-o ControlMaster=auto -o ControlPath=$lab_home/ssh-%r-%h -o ControlPersist=60 -o ServerAliveInterval=5 -o ServerAliveCountMax=3"
hang_up() {
  local socket
  for socket in "$lab_home"/ssh-*; do
    [[ ! -S $socket ]] || timeout 5 ssh -o ControlPath="$socket" -O exit lab 2>/dev/null || true
  done
}
each_login_new() { hang_up; unset MUSTER_LAB_SSH_OPTIONS; }

# What a test that failed leaves behind: logs, reports and the controller's database, the machines' consoles, and what kernels and services of
# those machines said that still answer, since consoles are quiet about it. Of each file the last 16 MiB; no images, no disks.
keep() {  # keep FILE NAME
  [[ -s $1 ]] || return 0
  mkdir -p "$logs" && tail -c 16M "$1" >"$logs/$2" || true
}
keep_logs() {  # keep_logs EXIT-STATUS
  local file n database=$MUSTER_LAB_DIR/state/muster.db
  # The test's own spec goes before the lab's, which of a shared one is that of its machines.
  for file in "$work"/*.log "$MUSTER_LAB_DIR"/{*.log,cluster.yaml} "$work"/*.yaml; do keep "$file" "$(basename "$file")"; done
  for file in "$work"/*/report.json; do keep "$file" "$(basename "$(dirname "$file")").json"; done
  for file in "$MUSTER_LAB_DIR"/nodes/*/*.log; do keep "$file" "$(basename "$(dirname "$file")")-$(basename "$file")"; done
  for file in "$MUSTER_LAB_DIR"/state/consoles/*.log; do keep "$file" "$(basename "$file" .log)-console-of-bmc.log"; done
  # As one file, with what is in its write-ahead log.
  if [[ -s $database ]]; then
    mkdir -p "$logs"
    sqlite3 -readonly "$database" ".timeout 10000" ".backup '$logs/muster.db'" 2>/dev/null || cp "$database"* "$logs"/ 2>/dev/null || true
  fi
  if [[ $1 -lt 128 ]]; then   # who breaks a test off does not wait for its machines
    for n in $($muster lab status --json 2>/dev/null | jq -r '.nodes[] | select(.power == "on") | .name'); do
      mkdir -p "$logs"
      timeout 10 "$muster" lab ssh "$n" -- sudo dmesg >"$logs/$n-dmesg.log" 2>/dev/null || true
      timeout 20 "$muster" lab ssh "$n" -- sudo journalctl -b --no-pager -n 3000 >"$logs/$n-journal.log" 2>/dev/null || true
    done
  fi
  [[ -d $logs ]] || return 0
  [[ ! -f $logs/musterd.log ]] || { echo "--- the end of the controller's log"; tail -n 25 "$logs/musterd.log"; } >&2
  echo "--- kept: $logs" >&2
}
cleanup() {
  local status=$?
  trap - EXIT
  trap : INT TERM   # a second signal does not break this off
  note_accelerator
  case $status in
    0) note_used ;;
    77) ;;
    *) keep_logs "$status" ;;
  esac
  # Jobs the test left, the namespace of a lab among them where one runs in there.
  local job
  for job in $(jobs -p); do kill "$job" 2>/dev/null && wait "$job" 2>/dev/null || true; done
  if [[ $status -ne 0 && -n ${MUSTER_E2E_KEEP:-} ]]; then
    echo "--- the lab stays up: MUSTER_LAB_DIR=$MUSTER_LAB_DIR MUSTER_SOCKET=$MUSTER_SOCKET $muster lab down" >&2
    exit "$status"
  fi
  hang_up
  # The round that takes it down in the end may have been killed.
  if [[ $status -eq 0 && -n ${MUSTER_E2E_LAB_STAYS:-} && -s $lab_home/bring-up ]] && kill -0 "$PPID" 2>/dev/null; then
    rm -rf "$work"
    exit 0
  fi
  $muster lab down >/dev/null 2>&1 || true
  rm -rf "$work" "$lab_home"
  exit $status
}
trap cleanup EXIT
trap 'trap : INT TERM; exit 130' INT TERM

die() { echo "FAILED: $*" >&2; exit 1; }
# A heading in the output, with the seconds since the test began.
stage() { echo "--- $* ($SECONDS s)"; }
# The archive of scripts/release.sh, unpacked into a folder: MUSTER_RELEASE=FILE, else made from this tree (build-portable/ is kept, so
# that the second time only what changed is compiled). Its programs have to be of the version that is tested.
unpack_archive() {  # unpack_archive FOLDER: sets unpacked
  local file=${MUSTER_RELEASE:-}
  if [[ -z $file ]]; then
    scripts/release.sh "$work/archive" >"$work/release.log" 2>&1 || { tail -n 30 "$work/release.log" >&2; die "release.sh"; }
    file=$(echo "$work"/archive/muster-*-linux-x86_64.tar.zst)
    (cd "$work/archive" && sha256sum --quiet -c SHA256SUMS) || die "the archive's digests"
  fi
  mkdir -p "$1"
  zstd -dcq "$file" | tar -x -C "$1"
  unpacked=$(echo "$1"/muster-*)
  [[ $("$unpacked/bin/muster" --version) == "$($muster --version)" ]] || die "$file is of another version than $muster"
}

# The accelerator that the lab's machines run under, for the ledger: asked once, of the lab itself.
note_accelerator() {
  [[ -n ${MUSTER_E2E_ACCELERATOR:-} && ! -s $MUSTER_E2E_ACCELERATOR && -d $MUSTER_LAB_DIR ]] || return 0
  $muster lab status --json 2>/dev/null | jq -r '.accel // empty' >"$MUSTER_E2E_ACCELERATOR" 2>/dev/null || true
}
# What the controller's runs used, how they spent their seconds, and its images, for the ledger. A test that ends its lab itself calls it
# before: once for each lab, since the seconds of all are added. Of a lab that an earlier test brought up: what came since, and what that
# test's bring-up used.
note_used() {
  [[ -n ${MUSTER_E2E_USED:-} && -s $MUSTER_LAB_DIR/state/muster.db ]] || return 0
  [[ -z $lab_before || ! -s $lab_home/used ]] || cat "$lab_home/used" >>"$MUSTER_E2E_USED"
  python3 tests/e2e/ledger.py used "$MUSTER_LAB_DIR/state" ${lab_before:+--after "$lab_before"} >>"$MUSTER_E2E_USED" || true
}
check() {  # check DESCRIPTION COMMAND...
  local what=$1
  shift
  note_accelerator
  if "$@"; then echo "  ok: $what"; else die "$what"; fi
}
# Runs a command and compares its exit status.
expect_exit() {  # expect_exit STATUS COMMAND...
  local want=$1 got=0
  shift
  "$@" || got=$?
  [[ $got -eq $want ]] || die "exit $got instead of $want: $*"
  echo "  ok: exit $want: $*"
}
# The commands under a heading of docs/first-cluster.md, one each line: its indented blocks, without what is said beside them.
page_commands() {  # page_commands HEADING
  awk -v heading="## $1" '
    /^## / { inside = index($0, heading) == 1; next }
    inside && /^    / { print substr($0, 5) }' docs/first-cluster.md | sed -E 's/ {3,}# .*$//'
}
node_ssh() { local n=$1; shift; $muster lab ssh "$n" -- "$@"; }
# A shell command of the node's fails there. The node has to answer: ssh that fails is no such thing.
fails_on() {  # fails_on NODE COMMAND-LINE
  node_ssh "$1" "if $2; then exit 1; else exit 0; fi"
}
# No line of these files, or of the files in these folders, has this text. Each has to be there: over a path that is not, grep finds nothing
# either. -E: the text is a pattern; -v: lines without it are looked for.
nowhere_in() {  # nowhere_in [OPTION...] TEXT PATH...
  local options=() text path got=0
  while [[ ${1:-} =~ ^-[Ev]+$ ]]; do options+=("$1"); shift; done
  [[ "${options[*]}" == *E* ]] || options+=(-F)
  [[ $# -ge 2 && -n $1 ]] || { echo "nowhere_in: no text, or no path" >&2; return 1; }
  text=$1
  shift
  for path in "$@"; do
    [[ -n $(find "$path" -type f -print -quit 2>/dev/null) ]] || { echo "nowhere_in: no file there: $path" >&2; return 1; }
  done
  grep -rq "${options[@]}" -- "$text" "$@" || got=$?
  [[ $got -eq 1 ]]   # 2: grep could not read
}
# A command succeeds, prints something, and no line of it has this text.
says_without() {  # says_without TEXT COMMAND...
  local text=$1 words
  shift
  words=$("$@") && [[ -n $words && -n $text && $words != *"$text"* ]]
}
# Nothing listens at this URL in the lab's network: curl itself says so, not a lab or a curl that is missing.
nobody_listens() {  # nobody_listens URL
  local got=0
  $muster lab exec -- curl -sk -m 5 -o /dev/null "$1" || got=$?
  [[ $got -eq 7 || $got -eq 28 ]]  # refused or no route; no answer
}
# A spec for this test: the quickstart's, edited with sed expressions.
spec_from_quickstart() { sed "$@" lab/quickstart.yaml >"$work/cluster.yaml"; }
# A spec with fewer machines (at most 3) and steps, for tests of faults: no shared storage, nothing measured.
small_spec() {  # small_spec NODES [SED-EXPRESSION...] >FILE
  local nodes=$1 macs='"52:54:00:20:00:01"' n
  shift
  for ((n = 2; n <= nodes; n++)); do macs+=", \"52:54:00:20:00:0$n\""; done
  local edit=() e
  for e in "$@"; do edit+=(-e "$e"); done
  sed -e "s/node\[01-03\]/node[01-0$nodes]/; s/mac: .*/mac: [ $macs ]/" -e '/^ *bulk:/d; /name: bulk/d; /^  shared:/d; /^acceptance:/d' \
    -e 's/\[ base, .*mpi \]/[ base, ssh, firewall, storage-local ]/' "${edit[@]}" lab/quickstart.yaml
}
# The lab of $work/cluster.yaml. Its controller takes images from MUSTER_IMAGE_CACHE, and leaves those there that it builds (passes/images.py).
lab_up() {
  hang_up
  $muster lab up "$work/cluster.yaml"
}
# Kernel arguments that the lab, whose controller runs, gives its machines: for systems that a test makes itself, and for a controller in a guest.
lab_kernel_options() {
  tr '\0' '\n' <"/proc/$(jq .pid "$MUSTER_LAB_DIR/musterd.pid")/environ" | sed -n 's/^MUSTER_KERNEL_OPTIONS=//p' | grep .
}
# Ceph's object stores measure their drive before each start, with 12 MB in random writes: minutes on an emulated one, whose result is out of
# range and thrown away each time. $work/own/storage-ceph.yaml, for `playbooks: [ own ]`, lets them leave it out.
ceph_skips_benchmark() {
  mkdir -p "$work/own"
  cat >"$work/own/storage-ceph.yaml" <<'YAML'
playbook: storage-ceph
overlay: true
steps:
  - name: no benchmark at the start of an object store
    phase: image
    module: file
    params: { path: /etc/systemd/system/ceph-osd@.service.d/20-lab.conf, content: "[Service]\nEnvironment=CEPH_ARGS=--osd-mclock-skip-benchmark=true\n" }
YAML
}
# ---- a lab that tests share: labs/NAME.sh, passes/labs.py

lab_before=   # newest run when this test took over the lab from an earlier one; empty: it brought it up
heal_all() {
  local node fault value words
  $muster lab status --json | jq -r '.nodes[] | .name as $n | .faults | to_entries[] | [$n, .key, .value] | @tsv' >"$work/faults"
  while IFS=$'\t' read -r node fault value; do
    words=("${fault%% *}")
    [[ $fault != *" "* ]] || words+=(--network "${fault#* }")
    [[ $fault != slow-drive ]] || words+=("${value%% *}")
    $muster lab break "$node" "${words[@]}" --heal </dev/null || die "the lab's reset: $fault of $node"
  done <"$work/faults"
}
all_accepted() { $muster status --json | jq -e '[.nodes[] | select(.declared)] | length > 0 and all(.state == "accepted")' >/dev/null; }
# The lab of labs/NAME.sh, and all nodes of the spec $work/cluster.yaml accepted, which may be some of the lab's machines: brought up, or
# reset, where an earlier test left it up. NAME.sh has two functions: lab_machines, a spec with all machines; lab_reset, for what remains once
# no fault is left, before `up`.
shared_lab() {  # shared_lab NAME
  local began=$SECONDS paid=true what="bring-up of the lab $1"
  lab_machines >"$work/machines.yaml"
  if [[ -s $lab_home/bring-up ]]; then
    paid=false what="reset of the lab $1"
    lab_before=$(journal "select coalesce(max(id), 0) from run")
    heal_all
    lab_reset
  fi
  $muster lab up "$work/machines.yaml" >"$work/lab-up.log" || { cat "$work/lab-up.log" >&2; die "$what"; }
  $muster up "$work/cluster.yaml" --yes --report "$work/report" >"$work/up.log" || { tail -n 40 "$work/up.log" >&2; die "$what"; }
  all_accepted || { $muster status >&2; die "$what: not all nodes are accepted"; }
  if [[ $paid == true ]]; then
    echo $((SECONDS - began)) >"$lab_home/bring-up"
    [[ -z ${MUSTER_E2E_LAB_STAYS:-} ]] || python3 tests/e2e/ledger.py used "$MUSTER_LAB_DIR/state" | jq -c 'del(.spent)' >"$lab_home/used" || true
  fi
  echo "  $what: $((SECONDS - began)) s"
  [[ -z ${MUSTER_E2E_USED:-} ]] || jq -nc --arg name "$1" --argjson bring_up "$(cat "$lab_home/bring-up")" --argjson paid $paid \
    '{lab: {name: $name, bring_up: $bring_up, paid: $paid}}' >>"$MUSTER_E2E_USED"
}

# How often a machine's firmware has started a system: a kexec does not count.
firmware_boots() { grep -ca 'BdsDxe: starting' "$MUSTER_LAB_DIR/nodes/$1/console.log" || true; }
# One value out of the controller's journal.
journal() { sqlite3 -readonly "$MUSTER_LAB_DIR/state/muster.db" "$1"; }
# How many systems of a node carried out actions of the runs: the RAM system and the installed one are two.
boots() {
  journal "select count(distinct json_extract(data, '\$.boot_before')) from journal where node = '$1' and event = 'intent'
           and json_extract(data, '\$.boot_before') <> ''"
}
# `muster up` in the background, its output in $work/up.log; `wait $up` or up_ends STATUS for its end.
up_begins() {  # up_begins [SPEC]
  $muster up "${1:-$work/cluster.yaml}" --yes --report "$work/report" >"$work/up.log" 2>&1 &
  up=$!
}
up_ends() {
  local got=0
  wait "$up" || got=$?
  [[ $got -eq $1 ]] || { cat "$work/up.log" >&2; die "up ended with $got instead of $1"; }
  echo "  ok: up ended with $1"
}
# Waits as long as the background `up` runs, and half an hour at most: image builds take their time on a busy machine.
during_up() {  # during_up DESCRIPTION COMMAND...
  local what=$1 deadline=$((SECONDS + 1800))
  shift
  until "$@"; do
    kill -0 "$up" 2>/dev/null || { cat "$work/up.log" >&2; die "up ended before: $what"; }
    [[ $SECONDS -lt $deadline ]] || { cat "$work/up.log" >&2; die "not within 30 minutes: $what"; }
    sleep 0.3
  done
  echo "  ok: $what"
}
node_is() {  # node_is NODE JQ-CONDITION, on what `muster status` tells of it
  $muster status --json 2>/dev/null | jq -e --arg n "$1" "any(.nodes[]; .name == \$n and ($2))" >/dev/null
}
# Polls until a command succeeds or the deadline (seconds) passes.
wait_until() {
  local deadline=$((SECONDS + $1))
  shift
  until "$@"; do [[ $SECONDS -lt $deadline ]] || return 1; sleep 1; done
}
# What is not as it should be in a report, one line each: for assertions, and to explain a failure.
findings() {  # findings REPORT.json
  jq -r '.nodes[] | .name as $n | .checks[] | select(.verdict == "fail" or .verdict == "degraded" or .verdict == "skipped")
         | [$n, .name, .verdict, .subject, (.blame | join(",")), .reason] | join(" | ")' "$1"
}
node_state() { $muster status --json | jq -r --arg n "$1" '.nodes[] | select(.name == $n) | .state'; }
