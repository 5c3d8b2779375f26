#!/usr/bin/env bash
# strangers on the network (thieves, polling, an impostor, floods, shared files, images), the root of a node (forged events, floods, a revoked poll), a user of it
# stands on: agent/core/{agent,identity}* agent/link/http_link* agent/storage/{nfs,parts}* controller/*
# stands on: agent/steps/accounts* agent/steps/files agent/steps/system/user* base/{event_kind,printable}* tests/field/doors/root-writes-in-user-folder
# stands on: controller/engines/{local_engine,nfs_engine}* controller/image/service/image_service* controller/options controller/ports/{run_ports,store}*
# stands on: controller/power/redfish* controller/{api,boot,executor,link,nodes,run,store,trust} playbooks/base.yaml playbooks/firewall.yaml
# stands on: playbooks/ssh.yaml playbooks/storage-local.yaml playbooks/storage-nfs.yaml
source "$(dirname "$0")/lib.sh"
small_spec 2 's/\[ base, ssh, firewall, storage-local \]/[ base, ssh, firewall, storage-local, storage-nfs ]/' \
  's/^      fast: .*/&\n      home: { match: { serial: "LABHOME*", size: 1 GiB, count: 1 }, policy: format-if-blank }/' \
  's/^  scratch: .*/&\n  home: { engine: nfs, server: node02, disks: home, mount: \/home\/shared }/' \
  's/^    - { name: fast, .*/&\n    - { name: home, size: 1 GiB, serial_prefix: LABHOME }/' \
  's/^limits: { netboot: 10 min, boot: 10 min }/limits: { netboot: 10 min, boot: 10 min, events: { per_second: 10, bytes_per_day: 4 MiB } }/' >"$work/cluster.yaml"
lab_up

# The stranger has an address of his own on the nodes' network.
controller=10.20.0.1 stranger=10.20.0.66 net=muster-quickstart
ip -n $net addr add $stranger/24 dev br0
lan() { ip netns exec $net "$@"; }
fetch() { lan curl -s --max-time 20 --interface $stranger "$@"; }
status_of() { fetch -o /dev/null -w '%{http_code}' "$@" || true; }
token_of() { fetch "http://$controller:7480/boot/52-54-00-20-00-0$1.ipxe" | grep -oE 'muster\.token=[0-9a-f]+' | cut -d= -f2; }
armed() { token=$(token_of "$1") && [[ -n $token ]]; }
join_as() {  # join_as NODE TOKEN NAME UUID -> HTTP status; what comes of it in $work/NAME.*
  openssl ecparam -name prime256v1 -genkey -noout -out "$work/$3.key"
  openssl req -new -key "$work/$3.key" -subj "/CN=$1" -out "$work/$3.csr" 2>/dev/null
  jq -n --arg node "$1" --arg token "$2" --arg uuid "$4" --rawfile csr "$work/$3.csr" \
    '{version: 1, node: $node, token: $token, csr: $csr, boot_id: "stranger", mode: "ram", product_uuid: $uuid, macs: []}' >"$work/$3.json"
  fetch -k --local-port "${join_ports:-665-1023}" -o "$work/$3.reply" -w '%{http_code}' --data-binary @"$work/$3.json" "https://$controller:7443/agent/v1/join"
}
poll_as() {  # status of asking for orders with what NAME got; 000: he is let wait
  jq -r .certificate "$work/$1.reply" >"$work/$1.pem"
  lan curl -sk --max-time 3 --interface $stranger --cert "$work/$1.pem" --key "$work/$1.key" -o "$work/$1.orders" -w '%{http_code}' \
    "https://$controller:7443/agent/v1/orders?have=" || true
}
large_as() {  # status of a large body under what NAME got
  fetch -k --cert "$work/$1.pem" --key "$work/$1.key" -o /dev/null -w '%{http_code}' --data-binary @"$work/large" "https://$controller:7443/agent/v1/events" || true
}
events() {  # events NODE ACTION: how many
  $muster logs --json | jq -s --arg n "$1" --arg a "$2" '[.[] | select((.kind == "join" or .kind == "boot") and .node == $n and .data.action == $a)] | length'
}
seen() { [[ $(events "$1" "$2") -ge $3 ]]; }
reason_of() { $muster status --json | jq -r --arg n "$1" '.nodes[] | select(.name == $n) | .reason'; }

# The thief is first: he joins as node01 while it is still in its firmware.
up_begins
during_up "node01's power-on is pending" armed 1
check "a user of another node cannot join in its place" test "$(join_ports=1024-65000 join_as node01 "$token" user "")" = 403
check "that is an event" wait_until 10 seen "" refused 1
check "the thief joins in its place" test "$(join_as node01 "$token" early "")" = 200
check "that is an event" wait_until 10 seen node01 joined 1
check "he is let wait for orders" test "$(poll_as early)" != 401
# An attacker requests node02's script again and again.
during_up "node02's power-on is pending" armed 2
polled=$(for _ in $(seq 200); do token_of 2 || true; done | sort -u | grep -c .)
check "200 scripts of node02 carry one token ($polled)" test "$polled" = 1
check "that is an event" seen node02 often 1
check "and few rows" test "$(journal 'select count(*) from token')" -le 8
# Floods: large bodies, and more connections than a stranger may have.
head -c 8388608 /dev/zero >"$work/large"
check "the boot port takes no body" test "$(status_of --data-binary x "http://$controller:7480/boot.ipxe")" = 413
check "nor a large one" test "$(status_of --data-binary @"$work/large" "http://$controller:7480/boot.ipxe")" = 413
check "the TLS port takes no large one" test "$(status_of -k --data-binary @"$work/large" "https://$controller:7443/agent/v1/join")" = 413
check "a guessed token is refused" test "$(join_as node02 guessed guess "")" = 403
check "that is an event" wait_until 10 seen "" refused 2
lan timeout 60 bash -c "for i in {1..80}; do exec {fd}<>/dev/tcp/$controller/7480; done; touch '$work/open'; sleep 50" &
flood=$!
check "80 connections" wait_until 20 test -e "$work/open"
check "the stranger's neighbour is served all the same" test "$(status_of "http://$controller:7480/boot.ipxe")" = 200
kill $flood; wait $flood || true

up_ends 3
check "node02 is accepted" test "$(node_state node02)" = accepted
check "node01 is quarantined" test "$(node_state node01)" = quarantined
check "with the reason" sh -c "echo '$(reason_of node01)' | grep -q 'second machine tried to join as node01'"
check "the real node's join is an event" test "$(events node01 second)" = 1
check "nothing was revoked" test "$(journal "select count(*) from certificate where node = 'node01' and revoked = 0 and contested = 1")" = 1
check "the thief is not heard any more" test "$(poll_as early)" = 401

# Another power-on settles it.
$muster up "$work/cluster.yaml" --limit node01 --yes --report "$work/report" >"$work/again.log"
check "node01 is accepted without the thief" test "$(node_state node01)" = accepted
check "what the thief had is revoked" test "$(journal "select count(*) from certificate where node = 'node01' and revoked = 0 and contested = 0")" = 1
check "and does nothing" test "$(poll_as early)" = 401
check "not even for a large body" test "$(large_as early)" = 413
check "but tell of him" wait_until 10 seen node01 revoked 1

# Shared files: for declared nodes only, root squashed, and no rights out of them.
node_ssh node02 sudo exportfs -s >"$work/exports"
cat "$work/exports"
check "exported to node01 alone" sh -c "cut -d'(' -f1 '$work/exports' | tr -s ' ' | grep -qx '/home/shared 10.20.0.11' && test \$(wc -l <'$work/exports') = 1"
check "root is squashed" sh -c "grep -q '[(,]root_squash' '$work/exports'"
check "mounted nosuid,nodev" sh -c "$muster lab ssh node01 -- findmnt -n -o OPTIONS /home/shared | grep nosuid | grep -q nodev"
check "on the server, too" sh -c "$muster lab ssh node02 -- findmnt -n -o OPTIONS /home/shared | grep nosuid | grep -q nodev"
node_ssh node01 sudo sh -c "'cp /usr/bin/id /home/shared/id && chmod 4755 /home/shared/id'"
check "what root of a client writes is not root's" test "$(node_ssh node02 stat -c %U /home/shared/id)" = nobody
check "root of a client opens it again" node_ssh node01 sudo sh -c "'dd if=/dev/zero of=/home/shared/id bs=1M count=1 conv=fsync 2>/dev/null'"
if command -v mount.nfs4 >/dev/null; then
  mkdir -p "$work/mnt"
  check "a stranger does not mount it" sh -c "! ip netns exec $net timeout 20 mount -t nfs4 -o soft,timeo=20,retrans=1 10.20.0.12:/home/shared '$work/mnt' 2>/dev/null"
fi

# The root of node02 has its agent's certificate, and the words of an agent.
of_node() {  # of_node NODE: its certificate, as root takes it
  for f in agent.pem agent.key; do node_ssh "$1" sudo cat /state/muster/$f >"$work/$1.$f"; done
}
say_as() {  # say_as NODE KIND DATA [ORDER] -> HTTP status of sending that event
  jq -n --argjson seq "$(date +%s%3N)" --arg kind "$2" --argjson data "$3" --arg order "${4:-}" \
    '{boot_id: "rogue", incarnation: "rogue", events: [{seq: $seq, time: 0, order: $order, kind: $kind, data: $data}]}' >"$work/said.json"
  send_as "$1" "$work/said.json"
}
send_as() {  # send_as NODE FILE -> HTTP status
  fetch -k --cert "$work/$1.agent.pem" --key "$work/$1.agent.key" -o /dev/null -w '%{http_code}' --data-binary @"$2" "https://$controller:7443/agent/v1/events" || true
}
of_node node02
check "its own kinds are taken" test "$(say_as node02 log '{"level": "info", "text": "of the root of node02"}')" = 200
for forged in 'join {"action": "second", "text": "a second machine tried to join as node01", "serial": "f0f0f0"}' 'secret {"name": "bmc", "action": "set", "serial": "f0f0f0"}' \
  'certificate {"action": "revoked", "serial": "f0f0f0"}' 'node {"action": "quarantined", "serial": "f0f0f0"}' 'rollout {"id": 7, "state": "done", "serial": "f0f0f0"}'; do
  say_as node02 "${forged%% *}" "${forged#* }" 99-x/node01/y >/dev/null
done
check "what it said of its own is in the log" wait_until 10 sh -c "$muster logs --json | grep -q 'of the root of node02'"
check "what it said in the controller's name is not" says_without f0f0f0 $muster logs --json
check "and nothing came of it" test "$(node_state node01)" = accepted
check "an escape sequence is taken as text" \
  test "$(say_as node02 log '{"level": "info", "text": "escapes \u001b[2J\u001b]0;title\u0007 \u009b31mred\u009b0m \u202eedir\r"}')" = 200
check "its words are there" wait_until 10 sh -c "$muster logs | grep -q escapes"
$muster logs >"$work/logs.txt"
controls='[\x00-\x08\x0b-\x1f\x7f]|\xc2[\x80-\x9f]|\xe2\x80[\xaa-\xae]|\xe2\x81[\xa6-\xa9]'
for file in "$work/logs.txt" "$MUSTER_LAB_DIR/musterd.log"; do
  check "nothing in $(basename "$file") controls a terminal" sh -c "test -s '$file' && ! LC_ALL=C grep -qP '$controls' '$file'"
done

# A user of node02 in his own home and in the scratch folder, while root applies steps there again and again.
into_node() { node_ssh "$1" sudo sh -c "'cat >$3'" <"$2"; }
cat >"$work/steps.json" <<'JSON'
{"steps":[
{"id":"user/account","module":"user","params":{"name":"guest","uid":970,"keys":["ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ0W0oWKm6pJ0W0oWKm6pJ0W0oWKm6pJ0W0oWKm6pJ0W guest"]}},
{"id":"user/key","module":"file","params":{"path":"/home/guest/.ssh/id_ed25519","mode":"0600","owner":"guest","group":"guest","content":"KEY\n"}},
{"id":"user/settings","module":"file","params":{"path":"/home/guest/.ssh/config","mode":"0600","owner":"guest","group":"guest","content":"Host *\n"}}]}
JSON
cat >"$work/scratch.json" <<'JSON'
{"steps":[
{"id":"user/folder","module":"directory","params":{"path":"/scratch/guest/cache","mode":"0777","owner":"guest","group":"guest"}},
{"id":"user/job","module":"file","params":{"path":"/scratch/guest/cron/job","owner":"guest","content":"* * * * * root id >/run/pwned\n"}},
{"id":"user/line","module":"line","params":{"path":"/scratch/guest/passwd","line":"evil::0:0::/root:/bin/sh"}}]}
JSON
cat >"$work/race.sh" <<'SH'
# race.sh TARGET RUNS: a racer of the user's, and steps of root's meanwhile; prints what of root's is the user's then.
rm -rf /home/guest/.evil
/usr/bin/perl /run/race.pl 970 /home/guest "$1" & racer=$!
for n in $(seq "$2"); do
  muster-agent apply </run/steps.json >/dev/null 2>&1
  [ -z "$(find /etc /root -xdev -uid 970)" ] || break
done
kill $racer; wait $racer 2>/dev/null
[ ! -L /home/guest/.ssh ] || { rm /home/guest/.ssh; mv /home/guest/.evil /home/guest/.ssh; }
find /etc /root -xdev -uid 970
SH
into_node node02 "$work/steps.json" /run/steps.json
into_node node02 "$work/scratch.json" /run/scratch.json
into_node node02 "$work/race.sh" /run/race.sh
into_node node02 tests/field/doors/root-writes-in-user-folder/race.pl /run/race.pl
check "the user has an account" node_ssh node02 sudo sh -c "'muster-agent apply </run/steps.json'"
for target in /etc/apt/apt.conf.d /root; do
  got=$(node_ssh node02 sudo bash /run/race.sh $target 30)
  check "30 times he swaps his folder for $target, and nothing there is his ($got)" test -z "$got"
done
check "nothing of his was written there" fails_on node02 "sudo test -e /root/id_ed25519 || sudo test -e /root/config || sudo test -e /root/authorized_keys || sudo test -e /etc/apt/apt.conf.d/config"
node_ssh node02 sudo sh -c "'install -d -o guest /scratch/guest; cp /etc/passwd /run/passwd.before; ln -sT /etc/cron.d /scratch/guest/cron;
  ln -sT /etc/passwd /scratch/guest/passwd; ln -sT /etc/cron.d /scratch/guest/cache; chown -h guest /scratch/guest/*'"
mode=$(node_ssh node02 stat -c %a:%U /etc/cron.d)
node_ssh node02 sudo sh -c "'muster-agent apply </run/scratch.json'" >"$work/scratch.log" 2>&1 || true
check "steps below his scratch folder do not follow his links" \
  fails_on node02 "sudo test -e /etc/cron.d/job || ! sudo cmp -s /etc/passwd /run/passwd.before"
check "and change no rights behind them" test "$(node_ssh node02 stat -c %a:%U /etc/cron.d)" = "$mode"
node_ssh node02 sudo sh -c "'rm -rf /scratch/guest /run/race.pl /run/race.sh /run/steps.json /run/scratch.json'"

# Images: what a netboot needs, and nothing beside it.
digest=$(basename "$(readlink -f "$MUSTER_LAB_DIR/state/images/cpu/current")")
images=http://$controller:7480/images/cpu
check "the manifest is served" test "$(status_of "$images/$digest/manifest.json")" = 200
mkdir -p "$MUSTER_LAB_DIR/state/images/cpu/.layers/k/tree/etc"
echo secret >"$MUSTER_LAB_DIR/state/images/cpu/.layers/k/tree/etc/shadow"
for path in "$digest/build.json" "$digest/ram.json" "$digest/ram/init" .layers/k/tree/etc/shadow current/build.json ../../muster.db; do
  check "not served: $path" test "$(status_of --path-as-is "$images/$path")" -ge 400
done

# A node's certificate does not make a controller: the agent hangs up before it shows its token.
pin=$(openssl x509 -in "$MUSTER_LAB_DIR/state/pki/ca.crt" -outform der | sha256sum | cut -d' ' -f1)
lan openssl s_server -accept $stranger:7443 -cert "$work/node02.agent.pem" -key "$work/node02.agent.key" -cert_chain "$MUSTER_LAB_DIR/state/pki/ca.crt" \
  -quiet >"$work/impostor.log" 2>&1 &
impostor=$!
check "an impostor listens" wait_until 10 lan bash -c "</dev/tcp/$stranger/7443"
check "join is refused" sh -c "! echo secret-token | ip netns exec $net '${muster%/*}/muster-agent' join --url https://$stranger:7443 --pin $pin --token - --node node01 --folder $work/nobody 2>'$work/join.log'"
cat "$work/join.log"
check "the impostor did not see the token" nowhere_in secret-token "$work/impostor.log"
kill $impostor; wait $impostor || true

# node02 is bound to its machine now. First a stranger without a UUID, then one who knows it and comes second.
uuid=$(node_ssh node02 sudo cat /sys/class/dmi/id/product_uuid | tr 'A-Z' 'a-z')
before=$(events node02 joined)
refused=$(events "" refused)
$muster reimage node02 --through-ram --force node02 --yes --report "$work/report-reimage" >"$work/up.log" 2>&1 &
up=$!
during_up "node02's power-on is pending" armed 2
check "without a UUID he is refused" test "$(join_as node02 "$token" nobody "")" = 403
check "that is an event" wait_until 10 seen "" refused $((refused + 1))
during_up "the real node02 joined" seen node02 joined $((before + 1))
check "the second one is refused" test "$(join_as node02 "$token" late "$uuid")" = 403
status=0
wait $up || status=$?
check "the run fails for node02 (exit $status)" test $status -ne 0
check "with the reason" sh -c "echo '$(reason_of node02)' | grep -q 'second machine tried to join as node02'"
check "the thief is an event" test "$(events node02 second)" = 1
check "the real node's certificate is not revoked" test "$(journal "select count(*) from certificate where node = 'node02' and revoked = 0 and contested = 1")" = 1

# Floods of node01's root: large events and small ones. What is beyond its share waits at the node.
of_node node01
node_ssh node01 sudo systemctl stop muster-agent   # root's own program speaks in its place
size_of_database() { du -cb "$MUSTER_LAB_DIR"/state/muster.db* | tail -n 1 | cut -f 1; }
rows_of() { journal "select count(*) from event where node = '$1'"; }
before=$(rows_of node01)
for n in $(seq 30); do
  jq -n --argjson seq "$((n * 1000))" '{boot_id: "rogue", incarnation: "small", events:
    [range(500) as $i | {seq: ($seq + $i), time: 0, order: "", kind: "log", data: {text: "x"}}]}' >"$work/flood.json"
  send_as node01 "$work/flood.json" >/dev/null
done
check "of 15000 small events not all are taken" test $(($(rows_of node01) - before)) -lt 3000
heard() { [[ $(say_as node01 log '{"level": "info", "text": "still here"}') = 200 ]]; }
check "and it is heard again after a while" wait_until 180 heard
before=$(size_of_database)
text=$(head -c 45000 /dev/urandom | base64 -w0)
taken=0
for n in $(seq 40); do
  jq -n --argjson seq "$((n * 1000))" --arg text "$text" '{boot_id: "rogue", incarnation: "large", events:
    [range(15) as $i | {seq: ($seq + $i), time: 0, order: "", kind: "log", data: {text: $text}}]}' >"$work/flood.json"
  [[ $(send_as node01 "$work/flood.json") != 200 ]] || taken=$((taken + 1))
done
check "of 36 MB of large ones neither ($taken of 40 parts)" test $taken -lt 10
grown=$(($(size_of_database) - before))
check "and the database did not grow by them ($grown)" test $grown -lt 16777216
check "the operator is answered all the same" test "$(node_state node01)" = accepted

# Withdrawn is withdrawn: the request that waits with node01's certificate ends with it, and so does the agent.
lan curl -sk --max-time 60 --interface $stranger --cert "$work/node01.agent.pem" --key "$work/node01.agent.key" -o "$work/open.orders" -w '%{http_code} %{time_total}\n' \
  "https://$controller:7443/agent/v1/orders?boot=rogue&mode=installed&have=" >"$work/open.status" &
open=$!
sleep 2   # until it waits
serial=$(openssl x509 -in "$work/node01.agent.pem" -noout -serial | cut -d= -f2 | tr 'A-Z' 'a-z')
check "node01's certificate is revoked" curl -sf -o /dev/null --unix-socket "$MUSTER_SOCKET" -d "" "http://localhost/v1/certificates/$serial/revoke"
wait $open
read -r status seconds <"$work/open.status"
check "the open request is refused ($status)" test "$status" = 401
check "long before its time is over ($seconds s)" test "${seconds%.*}" -lt 15
check "no order was its answer" says_without '"orders"' cat "$work/open.orders"
check "the next one is refused, too" test "$(lan curl -sk --max-time 3 --interface $stranger --cert "$work/node01.agent.pem" --key "$work/node01.agent.key" \
  -o /dev/null -w '%{http_code}' "https://$controller:7443/agent/v1/orders?boot=rogue&have=" || true)" = 401
