#!/usr/bin/env bash
# a running host is adopted: the preview writes nothing, its system, boot and data stay as they are; then two at once, one a stock Debian; each is measured
# stands on: agent/* agent/image/boot_network* agent/steps/* agent/steps/{disk,files,network,packages,services,system} agent/storage/storage_state*
# stands on: agent/{boot,checks,core,disk,facts,joining,link,measuring,work} base cli controller/* controller/engines/local_engine*
# stands on: controller/hosts/hosts_spec* controller/image/programs* controller/options controller/ports/{run_ports,store}* controller/power/redfish*
# stands on: controller/rollout/service controller/{api,bringup,current,executor,link,nodes,plan,run,spec,ssh,store,trust} host
# stands on: playbooks/acceptance/lab.yaml playbooks/base.yaml playbooks/firewall.yaml playbooks/ssh.yaml playbooks/storage-local.yaml sys
# stands on: tests/e2e/hosts
source "$(dirname "$0")/lib.sh"
each_login_new   # logins are counted, and the account that logs in changes
source tests/e2e/hosts/stock.sh
spec_of() { small_spec "$1"; echo "acceptance: { profile: lab }"; }
spec_of 3 >"$work/cluster.yaml"
spec_of 2 >"$work/two.yaml"
spec_of 1 >"$work/one.yaml"
lab_up

# The third machine was not made by muster. Of what the playbooks want, its owner has left some packages out.
stock_machine node03 10.20.0.13 52:54:00:20:00:03 >"$work/stock.log" 2>&1 || { cat "$work/stock.log"; die "a stock Debian for node03"; }
$muster up "$work/two.yaml" --yes --report "$work/report" >/dev/null

# One node becomes another owner's machine: no agent, no identity, no program, no record that muster made it, and settings of its own. The
# controller forgets it.
on_host() { node_ssh node02 sudo sh -c "'$1'"; }
becomes_a_stranger() {
  node_ssh "$1" sudo sh -c "'systemctl disable --now muster-agent.service; rm -rf /state/muster /var/lib/muster /etc/muster /usr/lib/muster /usr/sbin/muster-*
         rm -f /lib/systemd/system/muster-agent.service /etc/systemd/system/muster-agent.service; systemctl daemon-reload
         echo \"127.0.0.1 localhost stranger\" > /etc/hosts; hostname stranger; echo stranger > /etc/hostname; rm /etc/sysctl.d/*muster*'"
}
on_host 'dd if=/dev/urandom of=/scratch/blob bs=1M count=4 2>/dev/null; sync'
becomes_a_stranger node02
$muster up "$work/one.yaml" --yes --report "$work/report" >/dev/null
$muster node rm node02
check "the controller knows one node" test "$($muster node list --json | jq '.nodes | length')" = 1

identity() { on_host 'cat /proc/sys/kernel/random/boot_id; sha256sum /scratch/blob; blkid | sort; sfdisk -d /dev/disk/by-id/nvme-*LABOS0201*'; }
identity >"$work/identity"
# Everything on its file systems but what every login writes, and the time of /run: the preview's agent lies in there while it runs.
files_of() {
  on_host 'find / /state /scratch /boot -xdev -printf "%p %y %m %u %s %T@ %l\n" 2>/dev/null; findmnt -rn; ls -a /dev/shm' |
    grep -v -e '^/var/log[/ ]' -e '^/var/lib/chrony[/ ]' -e '^/run/user' -e '^/run d ' | sort -u
}
key=$MUSTER_LAB_DIR/ssh/id_ed25519
pin=$(node_ssh node02 sudo ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub | cut -d' ' -f2)
wrong=SHA256:$(printf 'A%.0s' {1..43})
node_add() { ip netns exec muster-quickstart "$muster" node add "$@" --user ops --report "$work/report-adopt"; }
adopt() { node_add spare02 --adopt 10.20.0.12 "$@"; }

# A host that had no program of muster's was measured: by those of the controller, which the order named by digest.
measured() {  # measured NAME NODE
  local report=$work/report-adopt/report.json name
  for name in dgemm/gflops memory/triad_mbps "local storage"; do
    check "$1: $name was measured" jq -e --arg n "$1" --arg c "$name" \
      'any(.nodes[] | select(.name == $n) | .checks[]; (.name | startswith($c)) and .verdict == "pass" and (.measured | type) == "number")' "$report"
  done
  check "$1 has the controller's programs, and no others" sh -c "$muster lab ssh $2 -- 'cd /usr/lib/muster && sha256sum *' | tr -d '\r' >'$work/carried' &&
    cut -c67- '$work/carried' | grep -qx muster-accept && (cd '$(dirname "$muster")' && sha256sum --quiet -c '$work/carried')"
}

files_of >"$work/files"
expect_exit 4 adopt --like node01 --key "$key" --host-key "$wrong" --yes
expect_exit 4 adopt --like node01 --key "$key" </dev/null
ssh-keygen -q -t ed25519 -N "" -f "$work/stranger"
expect_exit 4 adopt --like node01 --key "$work/stranger" --host-key "$pin" --yes
expect_exit 2 adopt --key "$key" --host-key "$pin" --yes
expect_exit 2 adopt --like node1 --key "$key" --host-key "$pin" --yes
adopt --like node01 --key "$key" --host-key "$pin" </dev/null >"$work/preview" 2>&1 && die "it went on without approval"
cat "$work/preview"
check "the preview names the hosts file and its difference" sh -c "grep -A1 'base/hosts file (file)' '$work/preview' | grep -q '/etc/hosts: '"
check "and the host's name" grep -q 'base/host name (hostname)' "$work/preview"
check "and the kernel parameters" grep -q 'base/kernel parameters' "$work/preview"
check "and does not name what is so already" nowhere_in storage-local/ "$work/preview"
check "no disk would be written over" grep -q '^Nothing will be destroyed' "$work/preview"
files_of >"$work/files-after"
check "nothing was written on the host" diff "$work/files" "$work/files-after"
check "nor in the spec" says_without spare02 $muster spec show

digest=$(adopt --like node01 --key "$key" --host-key "$pin" --json </dev/null | jq -r .digest) || true
expect_exit 4 adopt --like node01 --key "$key" --host-key "$pin" --approve 0000000000000000 </dev/null
logins() { on_host 'journalctl -t sshd -o cat | grep -c "Accepted publickey for ops"'; }
before=$(logins)
start=$SECONDS
adopt --like node01 --key "$key" --host-key "$pin" --approve "$digest"
echo "  adopting took $((SECONDS - start)) s"
check "one login was enough to look twice and to settle" test "$(($(logins) - before))" = 2   # the other one counted
check "spare02 is accepted" test "$(node_state spare02)" = accepted
measured spare02 node02
check "its agent says that it is adopted" node_is spare02 '.mode == "adopted"'
check "the spec says how it is reached" sh -c "$muster spec show | grep -q 'adopt: .*10.20.0.12.*$pin'"
identity >"$work/identity-after"
check "same boot, same data, same partitions and file systems" diff "$work/identity" "$work/identity-after"
check "the settings are there" on_host 'grep -q spare02 /etc/hosts && test "$(hostname)" = spare02 && ls /etc/sysctl.d/*muster*'
check "it was not booted or switched" test "$(journal "select count(*) from journal where node = 'spare02' and
  (action like '%/netboot' or action like '%/image' or action like '%/boot')")" = 0

runs() { journal "select count(*) from run"; }
before=$(runs)
on_host 'find /etc /usr/sbin -newermt 1970-01-01 -printf "%p %s %T@\n" | sort' >"$work/etc"
adopt --key "$key" --yes | tee "$work/again"
check "the second time there is nothing to do" grep -q "nothing changed" "$work/again"
check "no run was made" test "$(runs)" = "$before"
check "and nothing was written" sh -c "$muster lab ssh node02 -- sudo find /etc /usr/sbin -newermt 1970-01-01 -printf '\"%p %s %T@\\n\"' | sort | diff - '$work/etc'"
$muster up --yes --report "$work/report" | tail -n 2
expect_exit 4 $muster reimage spare02 --yes
check "reimage touched nothing" sh -c "[ \$($muster lab ssh node02 -- cat /proc/sys/kernel/random/boot_id) = \$(head -n 1 '$work/identity') ]"

# A host of another controller; then one whose agent is gone.
on_host 'cp /var/lib/muster/agent.json /root/; sed -i s/sha256:..../sha256:ffff/ /var/lib/muster/agent.json'
expect_exit 4 adopt --key "$key" --yes
on_host 'mv /root/agent.json /var/lib/muster/; systemctl stop muster-agent.service; rm /usr/sbin/muster-agent'
adopt --key "$key" --yes >"$work/back"
check "the agent is back, and nothing else had to change" sh -c "grep -q '^0 steps would change' '$work/back'"
check "spare02 is accepted" test "$(node_state spare02)" = accepted
identity >"$work/identity-after"
check "still the same boot and data" diff "$work/identity" "$work/identity-after"

# ---- two at once: one plan, one revision of the spec, one login each
$muster up "$work/one.yaml" --yes --report "$work/report" >/dev/null
$muster node rm spare02
becomes_a_stranger node02
revision() { journal 'select max(revision) from spec'; }
count_logins() { node_ssh "$1" sudo sh -c "'journalctl -t sshd -o cat | grep -c \"Accepted publickey for ops\"'" | tr -d '\r'; }
check "nothing of muster's is on the stock host" fails_on node03 "sudo find / -xdev -iname '*muster*' | grep -q ."
for node in node02 node03; do node_ssh $node sudo ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub; done >"$work/pins"
before=$(revision)
two() { node_add "spare[02-03]" --adopt "10.20.0.[12-13]" --key "$key" "$@"; }
expect_exit 4 two --like node01 --host-key "$pin" --yes   # the other host's key is not among them
check "nothing was declared" test "$(revision)" = "$before"
before_run=$(journal "select max(run) from journal")
logins02=$(count_logins node02) logins03=$(count_logins node03)
start=$SECONDS
two --like node01 --host-key "$work/pins" --yes >"$work/two" || { cat "$work/two"; die "two at once"; }
echo "  adopting two took $((SECONDS - start)) s"
for node in spare02 spare03; do check "$node is accepted" test "$(node_state $node)" = accepted; done
check "one login to each" test "$(($(count_logins node02) - logins02)) $(($(count_logins node03) - logins03))" = "2 2"   # the other one counted
for node in 2 3; do measured spare0$node node0$node; done
check "the spec has one revision more" test "$(revision)" = $((before + 1))
check "one run for both" test "$(journal "select count(distinct run) from journal where node in ('spare02', 'spare03') and run > $before_run")" = 1
check "each is itself" sh -c "$muster lab ssh node03 -- hostname | grep -qx spare03 && $muster lab ssh node02 -- hostname | grep -qx spare02"
two --yes >"$work/two-again"
check "the second time there is nothing to do" grep -q "nothing changed" "$work/two-again"
# One has lost its agent: the other one stays as it is.
node_ssh node03 sudo sh -c "'systemctl stop muster-agent.service; rm /usr/sbin/muster-agent'"
check "its agent is missed" wait_until 180 node_is spare03 '.silent_since > 0'
before_run=$(journal "select max(run) from journal")
two --yes >"$work/two-back" || { cat "$work/two-back"; die "one of two is back"; }
for node in spare02 spare03; do check "$node is accepted" test "$(node_state $node)" = accepted; done
check "nothing was done on spare02" test "$(journal "select count(*) from journal where node = 'spare02' and run > $before_run and event = 'intent'")" = 0
