#!/usr/bin/env bash
# a machine without a BMC is re-installed through the system it runs, by kexec or one boot of its loader; what cannot be is refused, or comes back as it was
# stands on: agent/steps/packages/package*
# stands on: agent/boot/{boot_once,kexec,ram_init}* agent/core/agent* agent/image/{boot_network,efi_variables}*
# stands on: agent/joining/adopt* cli/{adopt_host,adopt_verb}* controller/boot/service/{boot_service,kexec_order}*
# stands on: controller/engines/local_engine* controller/ports/run_ports* controller/power/{in_band,redfish}* controller/power/describe controller/{executor,run,ssh}
# stands on: playbooks/base.yaml playbooks/firewall.yaml playbooks/ssh.yaml playbooks/storage-local.yaml
source "$(dirname "$0")/lib.sh"
source tests/e2e/labs/small.sh
small_spec 2 >"$work/cluster.yaml"
# A RAM system that reaches no controller gives up after half of limits.netboot; the rest has to do for the way there and back: shutdown,
# firmware, the RAM system's boot, firmware again and the old system's boot, on a busy machine.
small_spec 1 's/^limits:.*/limits: { netboot: 8 min, boot: 10 min }/' >"$work/one.yaml"
shared_lab small

# node02 becomes another owner's machine, as in adopt.sh; the controller forgets it.
on_host() { node_ssh node02 sudo sh -c "'$1'"; }
on_host 'systemctl disable --now muster-agent.service; rm -rf /state/muster /var/lib/muster /etc/muster /usr/sbin/muster-agent
         rm -f /lib/systemd/system/muster-agent.service /etc/systemd/system/muster-agent.service; systemctl daemon-reload
         hostname stranger; echo stranger > /etc/hostname; touch /etc/drifted'
$muster up "$work/one.yaml" --yes --report "$work/report" >/dev/null
$muster node rm node02

# Nothing but SSH leads to it: adopted with the operator's key, then declared to be installed, without a BMC.
pin=$(node_ssh node02 sudo ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub | cut -d' ' -f2)
ip netns exec muster-quickstart "$muster" node add node02 --adopt 10.20.0.12 --user ops --like node01 \
  --key "$MUSTER_LAB_DIR/ssh/id_ed25519" --host-key "$pin" --yes --report "$work/report-adopt" >/dev/null
check "node02 is adopted" node_is node02 '.state == "accepted" and .mode == "adopted"'
awk '/^storage:/ {
       print "  - name: node02\n    role: cpu\n    power: { driver: ssh }\n    mac: \"52:54:00:20:00:02\"\n    address: 10.20.0.12\n    image: cpu"
       print "    disks:\n      os:   { match: { serial: \"LABOS*\",   size: 8 GiB, count: 1 }, policy: format-if-blank }"
       print "      fast: { match: { serial: \"LABFAST*\", size: 2 GiB, count: 2 }, policy: format-if-blank }" }
     { print }' "$work/one.yaml" >"$work/kexec.yaml"
boot_id() { node_ssh node02 cat /proc/sys/kernel/random/boot_id; }
# What no person ordered: the record of an order names who gave it.
switched() { journal "select count(*) from event where node = 'node02' and kind = 'power' and json not like '%hands over%' and json_extract(json, '\$.by') is null"; }
before=$(switched)
on_host 'dd if=/dev/urandom of=/scratch/blob bs=1M count=4 2>/dev/null; sync; sha256sum /scratch/blob' >"$work/blob"

# Locked down, and no room for the boot loader to start the RAM system from: refused by its agent before anything is touched.
boot_id >"$work/boot"
on_host 'mount /boot/efi && { dd if=/dev/zero of=/boot/efi/full bs=1M 2>/dev/null; umount /boot/efi; }' || true
on_host 'echo integrity > /sys/kernel/security/lockdown'
got=0 run=$(journal "select max(id) from run")
$muster up "$work/kexec.yaml" --yes --report "$work/report" || got=$?
check "up did not come through with it" test "$got" = 1 -o "$got" = 3
check "node02 is quarantined, and the reason names the lockdown and the room" \
  node_is node02 '.state == "quarantined" and (.reason | test("locked down.*is free on the boot loader.s partition"))'
# The old system answers, its disk is as it was, and nothing lies where the loader reads. One call: a host or a mount that fails is no answer.
as_it_was() {
  local words
  words=$(on_host 'test -e /etc/drifted && echo drifted
                   mount /boot/efi && { echo mounted; ls /boot/efi /boot/efi/loader/entries; umount /boot/efi; }' 2>/dev/null) || return 1
  [[ $words == *drifted* && $words == *mounted* && $words != *muster-once* ]]
}
check "nothing is left where the loader reads" wait_until 60 as_it_was
on_host 'mount /boot/efi && { rm /boot/efi/full; umount /boot/efi; }'
check "one attempt, no other" test "$(journal "select max(attempt) from journal where action = 'node02/netboot' and run > $run")" = 1
check "the same boot of the same system" sh -c "$muster lab ssh node02 -- cat /proc/sys/kernel/random/boot_id | diff - '$work/boot'"
check "nothing is loaded there" test "$(on_host 'cat /sys/kernel/kexec_loaded')" = 0
check "node01 is still accepted" test "$(node_state node01)" = accepted

# There is no way to switch it, and the refusal says so.
for verb in on "off --yes" "cycle --yes"; do expect_exit 2 $muster power $verb node02; done

on_host 'systemctl --no-block reboot' || true
came_up() { boot_id >"$work/now" 2>/dev/null && ! diff -q "$work/boot" "$work/now" >/dev/null; }
check "node02 is up again" wait_until 300 came_up
answers() { node_is node02 ".boot_id == \"$(cat "$work/now")\""; }
check "and its agent" wait_until 120 answers

# Its old system is back as far as its console says: one more login prompt than at `prompted`. The network is cut until then.
prompts() { grep -ac ' login: ' "$MUSTER_LAB_DIR/nodes/node02/console.log" || true; }
on_console() { test "$(prompts)" -gt "$prompted"; }
old_system_is_back() {
  during_up "the old system is back on its console" on_console
  $muster lab break node02 net-cut --heal
}

# The RAM system does not reach the controller: after half of limits.netboot it goes back to the old system, and the run tries again.
boot_id >"$work/boot"
prompted=$(prompts)
$muster reimage node02 --through-ram --yes --report "$work/report" >"$work/up.log" 2>&1 &
up=$!
leaves() { test "$(journal "select count(*) from event where node = 'node02' and kind = 'power' and json like '%kexec%'")" -ge 1; }
during_up "its own system hands over" leaves
$muster lab break node02 net-cut 3000
old_system_is_back
says() { test "$(journal "select count(*) from journal where node = 'node02' and event = 'unknown' and data like '%the old system is back%'")" = 1; }
during_up "the run says that the old system is back" says
check "it is another boot of the same system, and no disk was written" node_ssh node02 test -e /etc/drifted
up_ends 0
cat "$work/up.log"

# The second attempt went through.
check "node02 is accepted" test "$(node_state node02)" = accepted
check "its agent says that it is installed" node_is node02 '.mode == "installed"'
check "it is a new system" fails_on node02 "test -e /etc/drifted"
check "the data disks are as they were" sh -c "$muster lab ssh node02 -- sha256sum /scratch/blob | diff - '$work/blob'"
on_host 'cat /sys/firmware/efi/efivars/Boot0*' | tr -d '\0' >"$work/entries"
check "the firmware has an entry for it" grep -aq muster "$work/entries"

# Once more, from the system that muster installed.
boot_id >"$work/boot"
node_ssh node02 sudo touch /etc/drifted
count=$(journal "select count(*) from event where node = 'node02' and kind = 'power' and json like '%kexec%'")
$muster reimage node02 --through-ram --yes --report "$work/report" >"$work/up.log" 2>&1 &
up=$!
leaves_again() { test "$(journal "select count(*) from event where node = 'node02' and kind = 'power' and json like '%kexec%'")" -gt "$count"; }
during_up "it hands over again" leaves_again
up_ends 0
check "node02 is accepted" test "$(node_state node02)" = accepted
check "it is a new system" fails_on node02 "test -e /etc/drifted"

# Locked down: its boot loader starts the RAM system, once. That does not reach the controller, and the old system is back.
once() { journal "select count(*) from event where node = 'node02' and kind = 'power' and json like '%systemd-boot, one boot%'"; }
on_host 'echo integrity > /sys/kernel/security/lockdown; touch /etc/drifted'
boot_id >"$work/boot"
prompted=$(prompts)
$muster reimage node02 --through-ram --yes --report "$work/report" >"$work/up.log" 2>&1 &
up=$!
by_loader() { test "$(once)" = 1; }
during_up "it hands over by its boot loader" by_loader
$muster lab break node02 net-cut 3000
back=$(journal "select count(*) from journal where node = 'node02' and event = 'unknown' and data like '%the old system is back%'")
old_system_is_back
# At once: the run's next attempt takes it away again.
check "no disk was written, and its agent took away what was left for the loader" wait_until 60 as_it_was
says_again() { test "$(journal "select count(*) from journal where node = 'node02' and event = 'unknown' and data like '%the old system is back%'")" -gt "$back"; }
during_up "the run says that the old system is back" says_again
up_ends 0
check "node02 is accepted" test "$(node_state node02)" = accepted

# The same, and it comes.
on_host 'echo integrity > /sys/kernel/security/lockdown; touch /etc/drifted'
$muster reimage node02 --through-ram --yes --report "$work/report" >"$work/up.log" 2>&1 &
up=$!
by_loader_again() { test "$(once)" = 2; }
during_up "it hands over by its boot loader again" by_loader_again
up_ends 0
check "node02 is accepted" test "$(node_state node02)" = accepted
check "it is a new system" fails_on node02 "test -e /etc/drifted"
check "its power was never touched" test "$(switched)" = "$before"
