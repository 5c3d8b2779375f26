#!/usr/bin/env bash
# strangers on the provisioning network: thieves early and late, polling, no UUID, an impostor, floods, shared files, images: each an event
# stands on: agent/core/{agent,identity}* agent/link/http_link* agent/steps/disk/mount_flags* agent/storage/{nfs,parts}* controller/*
# stands on: controller/engines/{local_engine,nfs_engine}* controller/image/service/image_service* controller/options controller/ports/{run_ports,store}*
# stands on: controller/power/redfish* controller/{api,boot,executor,link,nodes,run,store,trust} playbooks/base.yaml playbooks/firewall.yaml
# stands on: playbooks/ssh.yaml playbooks/storage-local.yaml playbooks/storage-nfs.yaml
source "$(dirname "$0")/lib.sh"
small_spec 2 's/\[ base, ssh, firewall, storage-local \]/[ base, ssh, firewall, storage-local, storage-nfs ]/' \
  's/^      fast: .*/&\n      home: { match: { serial: "LABHOME*", size: 1 GiB, count: 1 }, policy: format-if-blank }/' \
  's/^  scratch: .*/&\n  home: { engine: nfs, server: node02, disks: home, mount: \/home\/shared }/' \
  's/^    - { name: fast, .*/&\n    - { name: home, size: 1 GiB, serial_prefix: LABHOME }/' >"$work/cluster.yaml"
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
for f in agent.pem agent.key; do node_ssh node02 sudo cat /state/muster/$f >"$work/$f"; done
pin=$(openssl x509 -in "$MUSTER_LAB_DIR/state/pki/ca.crt" -outform der | sha256sum | cut -d' ' -f1)
lan openssl s_server -accept $stranger:7443 -cert "$work/agent.pem" -key "$work/agent.key" -cert_chain "$MUSTER_LAB_DIR/state/pki/ca.crt" \
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
$muster reimage node02 --through-ram --yes --report "$work/report-reimage" >"$work/up.log" 2>&1 &
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
