#!/usr/bin/env bash
# docs/first-cluster.md walked: the commands of its rehearsal and of sections 4 to 7, read from the page, show what the page says
# stands on: agent/steps/accounts* agent/steps/files/config* agent/steps/not_applicable* agent/steps/packages/package*
# stands on: agent/steps/services/time_servers* agent/steps/system cli
# stands on: controller/api
# stands on: controller/engines/local_engine* controller/hosts/hosts_spec* controller/ports/run_ports* controller/power/redfish*
# stands on: controller/rollout/service controller/{bringup,current,executor,plan,report,run,spec} docs/first-cluster.md lab/one-server.yaml
# stands on: images/debian-12.yaml lab/{attach,up}* playbooks/acceptance/lab.yaml playbooks/base.yaml playbooks/firewall.yaml playbooks/ssh.yaml
# stands on: playbooks/storage-local.yaml
source "$(dirname "$0")/lib.sh"
page=docs/first-cluster.md
# The commands of a section, with the names that "Rehearse it" gives.
commands() { page_commands "$1" | sed 's/gpu01/server01/g; s/gpu08/server02/g'; }  # commands HEADING
# The page's commands run in a folder of their own, with this build, as root.
walk=$work/walk
mkdir -p "$walk" "$work/bin"
ln -s "$(realpath "$muster")" "$work/bin/muster"
printf '#!/bin/sh\nexec "$@"\n' >"$work/bin/sudo"
chmod +x "$work/bin/sudo"
ln -s "$PWD/lab" "$walk/lab"
export PATH=$work/bin:$PATH
# One command, its questions answered with yes at a terminal: `up` asks nowhere else.
at_terminal() {  # at_terminal SECONDS COMMAND-LINE
  (cd "$walk" && timeout "$1" python3 -c '
import os, pty, subprocess, sys
mine, theirs = pty.openpty()
os.write(mine, b"y\n" * 4)
sys.exit(subprocess.call(["bash", "-ec", sys.argv[1]], stdin=theirs))' "$2")
}
# Every command of a section; what they print is in $work/SECTION.log.
walk_section() {  # walk_section NUMBER HEADING
  local line
  while IFS= read -r line; do
    [[ -n $line ]] || continue
    echo "  \$ $line"
    at_terminal 3600 "$line" >>"$work/$1.log" 2>&1 || { local got=$?; tail -n 40 "$work/$1.log" >&2; die "exit $got: $line"; }
  done < <(commands "$2")
}
says() { grep -qE -- "$2" "$work/$1.log"; }   # says SECTION PATTERN

for heading in "4. The spec" "5. One machine" "6. All of them" "7. Is it accepted?" "Rehearse it"; do
  [[ -n $(commands "$heading") ]] || die "no commands under '$heading': the page changed its form"
done

# The rehearsal's preparation, as one script; packages are there already, and the lab goes down at the very end.
commands "Rehearse it" | grep -vE 'scripts/deps\.sh|lab down|lab up' >"$work/prepare.sh"
(cd "$walk" && bash -eu "$work/prepare.sh")
echo "  ok: the spec is copied as the page says"
cp "$walk/cluster.yaml" "$work/cluster.yaml"
lab_up   # the page's command, and images of earlier tests
unset MUSTER_SOCKET   # "`muster` finds the lab's controller by itself", here and in all that follows
check "muster finds the lab's controller" sh -c "$muster status >/dev/null"
walk_section spec "4. The spec"
check "the page says so" sh -c "grep -q '^    sudo muster lab up cluster.yaml' $page"
check "two machines, off" \
  test "$($muster lab status --json | jq -c '[.nodes[] | [.name, .power]]')" = '[["server01","off"],["server02","off"]]'

walk_section one "5. One machine" &
first=$!
asks() { kill -0 "$first" 2>/dev/null || die "the first up ended early"; $muster why server01 2>/dev/null | grep -q "RAM system"; }
check "why says what is awaited" wait_until 1800 asks
wait "$first" || die "section 5"
# Approved with the spec, it has no digest; where an image was built first, it is shown again, with one.
check "the first plan discovers" says one '^Plan( [0-9a-f]+)?: discover on 1 node'
check "and writes nothing" says one 'nothing is written to any disk'
check "the second installs" says one '^Plan [0-9a-f]+: install on 1 node'
check "it lists the disks by serial, with what is on them" says one 'server01 +os +serial LABOS.*now: blank'
check "three disks" says one 'WILL BE DESTROYED: 3 disks'
check "one of one accepted" says one '1 of 1 nodes accepted'
check "the report is there" test -s "$walk/muster-report/report.html"
check "server01 is accepted" test "$(node_state server01)" = accepted
lab_power() { $muster lab status --json | jq -r --arg n "$1" '.nodes[] | select(.name == $n) | .power'; }
check "server02 was left alone" test "$(lab_power server02)" = off

walk_section all "6. All of them"
check "the other one was found, and installed" says all '^Plan [0-9a-f]+: install on [12] node'
check "nothing of the first one's is destroyed" nowhere_in -E 'server01.*serial LAB|serial LAB.*server01' "$work/all.log"
check "both are accepted" test "$(node_state server01) $(node_state server02)" = "accepted accepted"
check "scratch is where the spec says" node_ssh server02 findmnt -n -o FSTYPE /scratch
# What else the spec says: time zone, name server, time server, packages of the role.
for node in server01 server02; do
  check "$node: the time zone" test "$(node_ssh "$node" readlink /etc/localtime)" = /usr/share/zoneinfo/Europe/Berlin
  check "$node: the name server, and no other" \
    test "$(node_ssh "$node" sed -n "'s/^nameserver //p'" /etc/resolv.conf)" = 10.20.0.1
  check "$node: its clock asks the time server" sh -c "$muster lab ssh $node -- chronyc -n sources | grep -qwF 10.20.0.1"
  check "$node: and no pool" fails_on "$node" "grep -q '^pool ' /etc/chrony/chrony.conf"
  check "$node: the role's packages" sh -c "$muster lab ssh $node -- command -v tmux >/dev/null && $muster lab ssh $node -- command -v htop >/dev/null"
done

system=$(node_ssh server02 findmnt -n -o SOURCE /)
walk_section last "7. Is it accepted?"
check "the key of the reports was written" grep -q 'PUBLIC KEY' "$walk/report.pub"
check "both were measured together and accepted" says last '2 of 2 nodes accepted'
slot=$(node_ssh server02 findmnt -n -o SOURCE /)
check "re-imaged: server02 runs from its other slot" test "$slot" != "$system"
check "it is accepted again" test "$(node_state server02)" = accepted
check "the backup is a database" test "$(sqlite3 -readonly "$walk/muster.db" 'pragma integrity_check')" = ok
note_used
ending=$(commands "Rehearse it" | grep 'lab down') || die "the page does not end the lab"
(cd "$walk" && bash -ec "$ending")
check "nothing is left" test ! -d "$MUSTER_LAB_DIR"
