#!/usr/bin/env bash
# running hosts are accepted over ssh, from the archive on systems without any library but glibc: each planted fault is named, and nothing is left there
# stands on: agent/checks agent/facts/{collect_facts,node_share}* agent/measuring agent/work/carried_programs* base
# stands on: cli/{accept_hosts,destination,early_lines,host_*,hosts_file,inventory}* controller/hosts controller/plan/machine_parts*
# stands on: controller/report/{collective,drift,link_faults}* host
# stands on: kernels/* kernels/cpu/{dgemm,expected_machine,sdc,stream}* kernels/{common,counters,drives,link,rdma,together,training} lab/hosts*
# stands on: cmake/carried.cmake cmake/portable.cmake kernels/portable.cc scripts/{dead_links,package-lib,release}*
# stands on: playbooks/acceptance/beside-jobs.yaml playbooks/acceptance/lab-compare.yaml playbooks/acceptance/lab.yaml sys
source "$(dirname "$0")/lib.sh"
[[ $EUID -eq 0 ]] || die "namespaces need root"
dir=/var/tmp/muster-hosts   # as in README: with its roots, which are kept
[[ ! -e $dir/hosts ]] || die "$dir holds hosts already: lab/hosts.sh down"
export XDG_STATE_HOME=$work/state
unpack_archive "$work/unpacked"
program=$unpacked/bin/muster
names=(node0{1..8})
hosts_end() { lab/hosts.sh down >/dev/null 2>&1 || true; }
trap 'ended=$?; set +e; hosts_end; (exit $ended); cleanup' EXIT

on() { local name=$1; shift; lab/hosts.sh run "$name" "$@"; }
# Where muster runs: trees of Debian 12 and 13 from which every library but glibc's was taken away. ssh keeps its own, in a folder in which
# no program looks that is not told to. They are in the hosts' network, so nothing is needed between ssh and a host.
namespace=mh$(printf %s "$dir" | cksum | cut -c1-6)   # as lab/hosts.sh names it
libraries_of() { find "$work/trees/$1"/usr/lib* "$work/trees/$1"/lib* -name '*.so*' ! -type d -printf '%f\n' | sort -u; }
glibc_of() { chroot "$dir/base/$1" dpkg -L libc6 | grep '\.so' | sed 's,.*/,,' | sort -u; }
make_tree() {  # make_tree SUITE
  local tree=$work/trees/$1 library
  mkdir -p "$tree/opt/ssh/lib"
  tar -C "$dir/base/$1" --exclude=./usr/share --exclude=./var --exclude=./proc --exclude=./dev --exclude=./sys -c . | tar -x -C "$tree"
  mkdir -p "$tree"/{proc,dev,sys,var/tmp,tmp}
  chmod 1777 "$tree"/{var/tmp,tmp}
  glibc_of "$1" >"$work/glibc-$1"
  for library in $(chroot "$dir/base/$1" ldd /usr/bin/ssh | awk '$2 == "=>" { print $3 }'); do
    grep -qxF "${library##*/}" "$work/glibc-$1" || cp -L "$dir/base/$1/$library" "$tree/opt/ssh/lib/"
  done
  mv "$tree/usr/bin/ssh" "$tree/opt/ssh/ssh"
  printf '#!/bin/sh\nexec /lib64/ld-linux-x86-64.so.2 --library-path /opt/ssh/lib /opt/ssh/ssh "$@"\n' >"$tree/usr/bin/ssh"
  chmod 755 "$tree/usr/bin/ssh"
  find "$tree"/usr/lib* "$tree"/lib* -name '*.so*' ! -type d -print0 | while IFS= read -r -d '' library; do
    grep -qxF "${library##*/}" "$work/glibc-$1" || rm -f "$library"
  done
}
# Every step executes the next one: the process id is the command's own. Mounts end with it.
# shellcheck disable=SC2016  # expanded by the inner shell
enter='tree=$1 user=$2; shift 2
  for folder in '"$work $dir"'; do mkdir -p "$tree$folder"; mount --bind "$folder" "$tree$folder"; done
  for folder in proc dev; do mount --rbind "/$folder" "$tree/$folder"; done
  exec chroot --userspec="$user" "$tree" /usr/bin/env -i PATH=/usr/bin:/bin "$@"'
in_tree() {  # in_tree SUITE USER [VARIABLE=VALUE...] COMMAND...
  ${before:-} ip netns exec "$namespace" unshare --mount --propagation private bash -euc "$enter" enter "$work/trees/$1" "${@:2}"
}
accept() {
  in_tree bookworm 0:0 HOME=/root XDG_STATE_HOME="$XDG_STATE_HOME" "$program" accept --hosts "${hosts:-$dir/hosts.txt}" --ssh-config "$work/ssh_config" --name try "$@"
}
# On Debian 13, as a user who unpacked the archive into a folder of his own, and calls it through a link.
home=home/ops
unpack_as_user() {
  local tree=$work/trees/trixie
  mkdir -p "$tree/$home/bin"
  cp -a "$unpacked" "$tree/$home/"
  ln -sfn "../$(basename "$unpacked")/bin/muster" "$tree/$home/bin/muster"
  cp "$dir"/{key,known_hosts,hosts.txt} "$tree/$home/"
  sed -e '/ProxyCommand/d' -e "s,$dir/,/$home/," "$dir/ssh_config" >"$tree/$home/ssh_config"
  chmod 0600 "$tree/$home/key"
  chown -R "$(stat -c %u:%g "$dir/base/trixie/$home")" "$tree/$home"
}
accept_as_user() { in_tree trixie "$(stat -c %u:%g "$dir/base/trixie/$home")" HOME="/$home" "/$home/bin/muster" accept --hosts "/$home/hosts.txt" --ssh-config "/$home/ssh_config" --name try "$@"; }
loads_only_glibc() {  # loads_only_glibc SUITE
  local loaded
  loaded=$(in_tree "$1" 0:0 LD_TRACE_LOADED_OBJECTS=1 "$program" | awk '{ print $1 }' | sed 's,.*/,,' | grep -v '^linux-vdso')
  [[ -n $loaded && -z $(comm -23 <(sort -u <<<"$loaded") "$work/glibc-$1") ]]
}
# All files of the hosts with their times, and all processes; less what a login itself leaves: sshd, sudo and PAM write there.
# /dev/tty is this machine's own.
# Folders in which a plain user makes a private one keep everything but their own time; the size of a folder changes when an overlay copies it up.
listing() {  # listing NAME...
  local name
  for name in "$@"; do
    on "$name" sh -c 'find / /run /tmp /dev /dev/shm /sys/class /var/tmp -xdev \( -type d -printf "%p d %m %u %T@\n" \) -o -printf "%p %y %m %u %s %T@ %l\n" 2>/dev/null | sort -u; ps -eo args=' |
      grep -v -e '^/var/log/\(wtmp\|lastlog\|btmp\|faillog\|wtmp.db\) ' -e '^/var/log d ' -e '^/run/sudo' -e '^/run/motd.dynamic ' -e '^/run d ' -e '^/run/utmp' -e '^/var/lib/lastlog' \
        -e '^ps -eo' -e '^sh -c find' -e '^sort -u' -e '^/proc' |
      sed -E -e 's#^(/dev/tty c .*) \S+ #\1#' -e 's#^(/dev/shm|/tmp|/var/tmp) d ([0-9]+ \S+) \S+#\1 d \2#' -e "s/^/$name /"
  done
}
same_as_before() { listing "${live[@]}" >"$work/after"; cmp -s "$work/before" "$work/after"; }
nothing_left() {  # the hosts may take some seconds to notice that a connection is gone
  wait_until 40 same_as_before || { diff "$work/before" "$work/after" | head -n 20 >&2; return 1; }
}
verdicts() { jq -r '.hosts[] | "\(.name) \(.verdict)"' "$work/json"; }
verdict_is() { jq -e --arg n "$1" --arg v "$2" 'any(.hosts[]; .name == $n and .verdict == $v and (.verdict == "accepted" or .reason != ""))' "$work/json" >/dev/null; }
ends_with() {  # ends_with STATUS ARGUMENT...: an accept with --json
  local want=$1 got=0
  shift
  accept --json "$@" >"$work/json" 2>"$work/errors" || got=$?
  [[ $got -eq $want ]] || { jq -c '{code, message, title, notes, hosts}' "$work/json" >&2; cat "$work/errors" >&2; [[ ! -f $work/report/report.json ]] || findings "$work/report/report.json" >&2; die "exit $got instead of $want: accept $*"; }
  check "its --json has the exit code" test "$(jq .exit "$work/json")" = "$want"
  echo "  ok: exit $want: accept $*"
}
# The process that runs this step, or nothing.
measures() { on "$1" pgrep -f -- "$2" >/dev/null; }
# In the background: its pid is $begun. A shell ignores the interrupt for what it starts there.
begins() { before='exec env --default-signal=INT' accept "$@" >"$work/begun" 2>&1 & begun=$!; }
fails_at() {  # fails_at NODE CHECK [PATTERN]: this check of this node failed or is degraded, and its parts or reason say so
  jq -e --arg n "$1" --arg c "$2" --arg p "${3:-}" 'any(.nodes[]; .name == $n and any(.checks[]; (.name | startswith($c)) and
    (.verdict == "fail" or .verdict == "degraded") and ((.subject + .reason + (.blame | join(" "))) | test($p))))' "$work/report/report.json" >/dev/null
}
up() {
  lab/hosts.sh up >"$work/up.log" 2>&1 || { cat "$work/up.log" >&2; die "no hosts"; }
  live=("${names[@]}")
  sed '/ProxyCommand/d' "$dir/ssh_config" >"$work/ssh_config"
}
fault() { lab/hosts.sh fault "$@"; }

# ---- healthy hosts
up
hosts=$dir/hosts.txt
for suite in bookworm trixie; do
  make_tree $suite
  check "$suite: no library is left but glibc's" test -z "$(comm -23 <(libraries_of $suite) "$work/glibc-$suite")"
  check "$suite: muster loads nothing else" loads_only_glibc $suite
done
unpack_as_user
for name in "${names[@]}"; do ssh -n -F "$dir/ssh_config" "$name" sudo -n true; done   # what a first login leaves is there before
listing "${live[@]}" >"$work/before"
ends_with 0 --profile lab --report "$work/report"
check "all are accepted, by sudo" test "$(jq '[.hosts[] | select(.verdict == "accepted" and .how == "sudo")] | length' "$work/json")" = 8
check "the report has their checks" jq -e '[.nodes[] | select(any(.checks[]; .name | startswith("dgemm")) and any(.checks[]; .name | startswith("links")))] | length == 8' "$work/report/report.json"
check "all-reduce over all of them was verified" jq -e 'any(.nodes[].checks[]; (.name | startswith("all-reduce")) and .verdict == "pass")' "$work/report/report.json"
check "its signature is good" "$program" report verify "$work/report/report.json" --key "$(find "$XDG_STATE_HOME" -name 'report.pub' | head -n 1)"
check "nothing is left" nothing_left

got=0
accept_as_user --profile lab --user --json --report "/$home/report" >"$work/json" 2>"$work/errors" || got=$?
[[ $got -eq 0 ]] || { cat "$work/errors" "$work/json" >&2; die "exit $got instead of 0: accept, as a plain user on Debian 13"; }
check "the user's report is signed" "$program" report verify "$work/trees/trixie/$home/report/report.json" --key "$(find "$work/trees/trixie/$home/.local" -name report.pub | head -n 1)"
check "all are accepted, as a plain user" test "$(jq '[.hosts[] | select(.verdict == "accepted" and .how == "user")] | length' "$work/json")" = 8
check "nothing is left" nothing_left
ends_with 5 --drift-only
check "nothing differs but the release, of which there are two" jq -e '[.drift.groups[].properties[] |
  select(.agreement == "outliers" or .agreement == "tie") | .name] == ["operating system"]' "$work/json"

# ---- a command that ends before its time
begins --profile lab
check "it measures" wait_until 60 measures node03 'link-serve'
expect_exit 4 accept --profile lab --json >/dev/null   # another one at the same time
kill -KILL "$begun"
wait "$begun" 2>/dev/null || true
check "killed: nothing is left" nothing_left
begins --profile lab
check "it measures" wait_until 60 measures node03 'link-serve'
kill -INT "$begun"
got=0
wait "$begun" || got=$?
check "interrupted: exit 1" test $got = 1
check "nothing is left" nothing_left
begins --profile lab --json
check "it measures" wait_until 60 measures node03 'link-serve'
kill -KILL "$(pgrep -P "$begun" -f 'node03 /bin/sh')"
got=0
wait "$begun" || got=$?
check "a lost connection is taken up again" test $got = 0
check "nothing is left" nothing_left

# ---- a second operator, with a state of their own
begins --profile lab --json
check "it measures" wait_until 60 measures node03 'link-serve'
kill -STOP "$begun"   # its agents wait for a minute
got=0
XDG_STATE_HOME=$work/second accept --profile lab --json >"$work/json" 2>"$work/errors" || got=$?
kill -CONT "$begun"
check "the second one measures nothing" test $got = 3
check "each host is busy, and the holder is named" jq -e 'all(.hosts[]; .verdict == "busy" and (.reason | test("pid [0-9]+.* of user root.* since 20")))' "$work/json"
got=0
wait "$begun" || got=$?
check "the first one is not disturbed" test $got = 0
check "nothing is left" nothing_left

# ---- faults of machines, as root
fault node02 slow-link
fault node03 slow-drive
fault node06 firmware
for kind in no-tty prints noexec; do fault node07 $kind; done
listing "${live[@]}" >"$work/before"
begins --profile lab-compare --report "$work/report" --json
check "it measures" wait_until 60 measures node05 'drives '
fault node05 xid
listing "${live[@]}" >"$work/with-xid" || true
fault node08 dies
got=0
wait "$begun" || got=$?
cp "$work/begun" "$work/json"
check "some are not accepted" test $got = 3
findings "$work/report/report.json"
for name in node01 node04 node06 node07; do check "$name is accepted" verdict_is $name accepted; done
check "the slow link is named" fails_at node02 links
check "the slow drive is named" fails_at node03 drives
check "the Xid is named" fails_at node05 counters/gpu_xids '0000:3b:00'
check "the host that died is named" jq -e 'any(.hosts[]; .name == "node08" and .verdict != "accepted" and .reason != "")' "$work/json"
check "the other firmware is named, and no other host" jq -e '[.drift.groups[].properties[].outliers[]] == ["node06"]' "$work/report/report.json"
check "no check of a healthy host failed" jq -e '[.nodes[] | select(.name | IN("node01", "node04", "node06", "node07")) | .checks[] |
  select((.verdict == "fail" or .verdict == "degraded") and (.reason | test("explained by: link of node0[28],") | not))] == []' "$work/report/report.json"
live=(node0{1..7})
grep -v '^node08 ' "$work/before" | grep -v '^node05 /dev/kmsg ' >"$work/before.new"
mv "$work/before.new" "$work/before"
same_as_before() { listing "${live[@]}" | grep -v '^node05 /dev/kmsg ' >"$work/after"; cmp -s "$work/before" "$work/after"; }
check "nothing is left" nothing_left
hosts_end

# ---- wrong data, and what a plain user meets
up
same_as_before() { listing "${live[@]}" >"$work/after"; cmp -s "$work/before" "$work/after"; }
fault node04 wrong-data
for kind in no-sudo noexec prints; do fault node07 $kind; done
listing "${live[@]}" >"$work/before"
got=0
rm -rf "$work/report"   # not the one of the run before
accept --profile lab --report "$work/report" --json >"$work/json" || got=$?
jq -c '{title, notes, hosts}' "$work/json"
findings "$work/report/report.json"
check "wrong data: not all are accepted" test $got = 3
check "the host whose data is wrong is named" fails_at node04 links
check "no other host is" test "$(jq -r '.hosts[] | select(.verdict != "accepted") | .name' "$work/json")" = node04
check "node07 was measured as a plain user, and why" jq -e '.hosts[] | select(.name == "node07") | .how == "user" and .why_user != ""' "$work/json"
check "nothing is left" nothing_left
hosts_end

# ---- hosts that cannot be measured
up
ends_with 0 --profile lab
# Names that this machine does not know, as behind a jump host, of machines with one product UUID.
cp "$dir/ssh_config" "$work/inner_config"
for i in 1 3; do
  printf 'Host inner0%s\n  User ops\n  IdentityFile %s/key\n  IdentitiesOnly yes\n  UserKnownHostsFile %s/known_hosts\n  HostName inner0%s.cluster.internal\n  HostKeyAlias 10.63.0.%s\n  ProxyCommand ip netns exec %s socat - TCP:10.63.0.%s:22\n' \
    "$i" "$dir" "$dir" "$i" "$i" "$namespace" "$i" >>"$work/inner_config"
done
uuid=$dir/hosts/node03/machine/dmi/product_uuid
cp "$uuid" "$work/uuid"
cat "$dir/hosts/node01/machine/dmi/product_uuid" >"$uuid"
got=0
"$program" accept --hosts inner01,inner03 --ssh-config "$work/inner_config" --name inner --profile lab --json >"$work/json" || got=$?
check "hosts whose names are unknown here, and that have one UUID, are accepted" test $got = 0
cat "$work/uuid" >"$uuid"
# A name and where it leads.
hosts='node04 node06' expect_exit 2 accept --profile lab --json
got=0
"$program" accept --hosts 'node04 destination=node06,node06 destination=node04' --ssh-config "$dir/ssh_config" --name turned --profile lab --json >"$work/json" || got=$?
check "hosts under the names of others are refused" test "$got $(jq '[.hosts[] | select(.verdict == "refused")] | length' "$work/json")" = "3 2"
fault node01 wrong-key
fault node02 refused
fault node03 firewall
fault node04 busy
fault node05 other-machine
fault node06 full-memory
{ cat "$dir/hosts.txt"; echo "twin node08"; echo "nowhere nowhere.invalid"; } >"$work/hosts.txt"
hosts=$work/hosts.txt
listing "${live[@]}" >"$work/before"
ends_with 3 --profile lab --report "$work/report"
verdicts
for name in node01 node02 nowhere; do check "$name was not reached" verdict_is $name not_reached; done
check "a host without memory is lost again and again, and fails" verdict_is node06 failed
check "a busy host is refused" verdict_is node04 busy
check "two names for one machine" verdict_is twin refused
check "the firewall is named" jq -e 'any(.hosts[]; .name == "node03" and .verdict != "accepted" and .reason != "")' "$work/json"
check "another machine under a name is said" jq -e 'any(.notes[], (.hosts[] | select(.name == "node05") | .reason); test("node05|machine"))' "$work/json"
check "the rest is accepted" verdict_is node07 accepted
check "nothing is left" nothing_left
hosts=$dir/hosts.txt
got=0
accept --beside-jobs --json >"$work/json" || got=$?
verdicts
check "beside jobs the busy one is looked at, and not accepted" verdict_is node04 looked_at
check "none is accepted" jq -e 'all(.hosts[]; .verdict != "accepted")' "$work/json"
check "and it is exit 3" test $got = 3

# ---- bad input
printf 'node01 -oProxyCommand=x\n' >"$work/bad.txt"
hosts=$work/bad.txt expect_exit 2 accept --json
hosts=$work/no-such.txt expect_exit 2 accept --json
expect_exit 2 accept --profile no-such --json
hosts_end

# ---- README's third block, as it stands there
mkdir "$work/tree"
ln -s "$PWD/lab" "$work/tree/lab"
ln -s "${program%/*}" "$work/tree/build"
sudo() { "$@"; }
readme() { awk '/^## Measure a running cluster/ { inside = 1; next } /^## / { inside = 0 } inside && /^    / { print substr($0, 5) }' README.md; }
check "README has the block" test "$(readme | grep -c .)" = 3
block=$(readme | sed 's/$/ \&\&/'; echo true)   # read here: the folder of the next line has no README
(cd "$work/tree" && eval "$block") >"$work/readme.log" 2>&1 || { cat "$work/readme.log" >&2; die "README's block"; }
check "and it left a report" "$program" report verify "$work/tree/muster-report/report.json" --key "$(find "$XDG_STATE_HOME" -name 'report.pub' | head -n 1)"
check "and no host" test ! -e "$dir/hosts"
