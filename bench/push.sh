#!/usr/bin/env bash
# The same 30 steps on 64 hosts over ssh, by muster's agent, a parallel ssh of a ready script (clush), Ansible with Mitogen and plain
# Ansible (pipelining, 64 forks), one after the other in one run: first run, and one that has nothing to change. HOSTS=64.
# A host is a root of its own (overlay) with sshd in mount, PID, UTS and network namespaces of its own, behind a bridge that this
# script made; systemctl is a stub (bench/push/systemctl), and what they write is in memory. Each tool gets hosts that were never
# touched, and bench/push/verify.py looks at all of them after each run. Muster's row has nothing on the host before: its agent is
# copied and the connection opened in the time that is printed. What it runs is the order alone: no controller, no plan, no approval,
# no journal (bench/push.cc).
# Needs root and Debian's packages ansible-core, ansible-mitogen, clustershell, mmdebstrap. Last line: JSON.
set -euo pipefail
cd "$(dirname "$0")/.."
here=$PWD/bench/push
hosts=${HOSTS:-64}
[[ $(id -u) = 0 ]] || { echo "bench push: needs root, for namespaces and mounts" >&2; exit 1; }
for tool in ansible-playbook clush mmdebstrap jq nsenter bc; do
  command -v $tool >/dev/null || { echo "bench push: no $tool: apt-get install ansible-core ansible-mitogen clustershell mmdebstrap jq bc" >&2; exit 1; }
done
if [[ -z ${IN_NAMESPACES:-} ]]; then
  scripts/build.sh release muster-bench-push muster-agent >&2
  # Mounts, the bridge and the hosts' networks belong to this run alone, and are gone with it.
  IN_NAMESPACES=1 exec unshare --mount --pid --fork --mount-proc bash "$0" "$@"
fi
build=${MUSTER_BUILD:-$PWD/build-release}
mitogen=$(python3 -c 'import ansible_mitogen, os; print(os.path.join(os.path.dirname(ansible_mitogen.__file__), "plugins/strategy"))' 2>/dev/null) ||
  mitogen=/usr/lib/python3/dist-packages/ansible_mitogen/plugins/strategy
[[ -d $mitogen ]] || { echo "bench push: no Mitogen: apt-get install ansible-mitogen" >&2; exit 1; }

work=$(mktemp -d /var/tmp/muster-push.XXXXXX)
running=()   # the hosts' processes, as this PID namespace knows them
die() { echo "FAILED: $*" >&2; exit 1; }
hosts_down() {
  local p
  for p in "${running[@]}"; do kill -KILL "$p" 2>/dev/null || true; wait "$p" 2>/dev/null || true; done
  running=()
  rm -rf "$work"/hosts/h*
}
cleanup() {
  local status=$?
  trap - EXIT
  hosts_down
  umount "$work/hosts" 2>/dev/null || true
  rm -rf "$work"
  exit $status
}
trap cleanup EXIT
trap 'exit 130' INT TERM

# ---- what all hosts have in common, and a network of this run's own
echo "the hosts' common root ..." >&2
mmdebstrap --quiet --variant=minbase --include=openssh-server,sudo,iptables,procps,iproute2,python3,python3-apt bookworm "$work/base" >"$work/mmdebstrap.log" 2>&1 ||
  { tail -n 5 "$work/mmdebstrap.log" >&2; die "the hosts' root"; }
ssh-keygen -q -t ed25519 -N "" -f "$work/key"
install -d -m 0700 "$work/base/root/.ssh"
install -m 0600 "$work/key.pub" "$work/base/root/.ssh/authorized_keys"
: >"$work/base/root/.bashrc"   # as an image for servers ships it: sourcing one costs each command of ssh
printf 'MaxStartups 200\nMaxSessions 100\nUseDNS no\nUsePAM no\n' >"$work/base/etc/ssh/sshd_config.d/bench.conf"
install -m 0755 "$here/systemctl" "$work/base/usr/bin/systemctl"
pin=$(ssh-keygen -lf "$work/base/etc/ssh/ssh_host_ed25519_key.pub" | cut -d' ' -f2)
python3 "$here/steps.py" "$work"
mkdir -p "$work/hosts" /run/netns
mount -t tmpfs -o size=8g tmpfs "$work/hosts"
mount -t tmpfs tmpfs /run/netns
ip netns add tools
on_tools() { ip netns exec tools "$@"; }
ip -n tools link set lo up
ip -n tools link add hosts type bridge
ip -n tools address add 10.64.255.254/16 dev hosts
ip -n tools link set hosts up
names=()
for ((i = 1; i <= hosts; i++)); do
  names+=("h$i")
  ip netns add "h$i"
  ip -n tools link add "h$i" type veth peer name eth0 netns "h$i"
  ip -n tools link set "h$i" master hosts up
  ip -n "h$i" address add "10.64.0.$i/16" dev eth0
  ip -n "h$i" link set eth0 up
  echo "h$i ansible_host=10.64.0.$i" >>"$work/inventory.hosts"
  echo "10.64.0.$i" >>"$work/addresses"
done
{
  echo "[all]"; cat "$work/inventory.hosts"
  echo "[all:vars]"
  echo "ansible_user=root"; echo "ansible_ssh_private_key_file=$work/key"; echo "ansible_python_interpreter=/usr/bin/python3"
} >"$work/inventory"
sed "s|^|10.64.0.|; s|\$| $(cut -d' ' -f1,2 "$work/base/etc/ssh/ssh_host_ed25519_key.pub")|" <(seq 1 "$hosts") >"$work/known_hosts"

answers() { [[ $(on_tools timeout 5 bash -c "head -c 4 </dev/tcp/10.64.0.$1/22" 2>/dev/null) == SSH- ]]; }
hosts_up() {
  local i name tries
  # Kernel parameters belong to the network, which outlives a host: as a new one has them.
  for name in "${names[@]}"; do
    ip netns exec "$name" sh -c 'echo 4096 >/proc/sys/net/core/somaxconn; cd /proc/sys/net/ipv4; echo 0 >ip_forward; echo 1 >tcp_syncookies; echo 60 >tcp_fin_timeout'
    mkdir "$work/hosts/$name"
    ip netns exec "$name" unshare --mount --uts --pid --fork --kill-child bash "$here/host.sh" "$work/base" "$work/hosts/$name" "$name" >"$work/hosts/$name.log" 2>&1 &
    running+=($!)
  done
  for ((i = 1; i <= hosts; i++)); do
    tries=0
    until answers "$i"; do tries=$((tries + 1)); [[ $tries -lt 50 ]] || { cat "$work/hosts/h$i.log" >&2; die "h$i does not answer"; }; sleep 0.2; done
  done
}
# sshd of each host: the child of the process that made its namespaces.
are_right() {
  local p insides=()
  for p in "${running[@]}"; do insides+=("$(pgrep -P "$p")"); done
  python3 "$here/verify.py" "$work/expected.json" "${insides[@]}" >"$work/verify.log"
}
verified() { are_right || { head -n 5 "$work/verify.log" >&2; die "$1: the hosts are not in the requested state"; }; }
untouched() { ! are_right || die "the hosts are so already: nothing can be measured"; }

export ANSIBLE_CONFIG=$work/ansible.cfg ANSIBLE_LOCAL_TEMP=$work/tmp ANSIBLE_HOME=$work/ansible LC_ALL=C.UTF-8
cat >"$work/ansible.cfg" <<CFG
[defaults]
forks = 64
inventory = $work/inventory
[ssh_connection]
pipelining = True
control_path_dir = $work/cp
ssh_args = -o ControlMaster=auto -o ControlPersist=60s -o UserKnownHostsFile=$work/known_hosts
CFG
ssh_options="-o IdentityFile=$work/key -o UserKnownHostsFile=$work/known_hosts -o BatchMode=yes"

# Each prints what happened; `changes TOOL` is how many hosts changed something, once all hosts ended well.
by_muster() { on_tools "$build/muster-bench-push" "$build/muster-agent" "$work/order.json" "$work/key" "$pin" "$work/addresses"; }
by_ssh() { on_tools clush -f 64 -S -b -l root -o "$ssh_options" --hostfile "$work/addresses" "sh -s" <"$work/script.sh"; }
by_mitogen() { ANSIBLE_STRATEGY_PLUGINS=$mitogen ANSIBLE_STRATEGY=mitogen_linear on_tools ansible-playbook "$work/playbook.yaml"; }
by_ansible() { on_tools ansible-playbook "$work/playbook.yaml"; }

seconds() {  # seconds TOOL: how long it took; its output in $work/out
  local begun
  begun=$(date +%s%N)
  "by_$1" >"$work/out" 2>&1 || { tail -n 20 "$work/out" >&2; return 1; }
  echo "scale=3; ($(date +%s%N) - $begun) / 1000000000" | bc
}
unchanged() {  # unchanged TOOL: by its own words, on every host
  local n
  case $1 in
    muster) n=$(grep -c ' already=30 applied=0 ' "$work/out") ;;
    ssh) n=$(sed -n 's/^\(.*\)$/\1/p' "$work/out" | grep -qx 'changed=0' && ! grep -q 'changed=[1-9]' "$work/out" && echo "$hosts") || n=0 ;;
    *) n=$(grep -cE 'changed=0 +unreachable=0 +failed=0' "$work/out") ;;
  esac
  [[ $n = "$hosts" ]] || { tail -n 5 "$work/out" >&2; die "$1: $n of $hosts hosts say that nothing changed"; }
}
load=$(cut -d' ' -f1 /proc/loadavg)   # other work on the machine makes all slower
row='{}'
for tool in ${TOOLS:-muster ssh mitogen ansible}; do
  hosts_up
  untouched
  first=$(seconds "$tool") || die "$tool: the first run"
  verified "$tool, first run"
  again=$(seconds "$tool") || die "$tool: the second run"
  unchanged "$tool"
  verified "$tool, second run"
  hosts_down
  echo "$tool: first run $first s, nothing to change $again s, $hosts hosts verified after each"
  row=$(jq -c --arg t "$tool" --argjson f "$first" --argjson a "$again" '. + {($t + "_s"): $f, ($t + "_no_change_s"): $a}' <<<"$row")
done
jq -c --argjson hosts "$hosts" --argjson load "$load" --argjson cores "$(nproc)" '
  def ratio(a; b): if a and b then ((a / b * 100 | floor) / 100) else null end;
  {bench: "push", hosts: $hosts, steps: 30, cores: $cores, load: $load} + .
  + {ratio_ansible: ratio(.ansible_s; .muster_s), ratio_mitogen: ratio(.mitogen_s; .muster_s), ratio_ssh: ratio(.muster_s; .ssh_s)}' <<<"$row"
