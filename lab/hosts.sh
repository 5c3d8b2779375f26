#!/usr/bin/env bash
# Running hosts to try things on, without virtual machines: each is a root of its own (Debian 12 and 13 in turn) with sshd, in mount, PID,
# UTS and network namespaces of its own, on a bridge that no interface of this machine is in. They share its kernel and processors: SIMULATED
# hosts, good for connections, privileges and faults, not for speeds. Drive (a loop device, 100 MB/s), link (100 Mbit/s), firmware data,
# kernel log, load and boot id are made up for each. Needs root.
#   lab/hosts.sh up [--count N] [--dir DIR]          makes them; the roots are kept in DIR/base, so the next time takes seconds
#   lab/hosts.sh down [--dir DIR] [--all]            ends them and removes DIR, except DIR/base; with --all, DIR/base too
#   lab/hosts.sh run [--dir DIR] NAME COMMAND...     as root inside a host
#   lab/hosts.sh fault [--dir DIR] NAME KIND         plants a fault, which stays until `down`: see lab/hosts_fault.sh
#   lab/hosts.sh list [--dir DIR]                    name, Debian release and process id of each
# DIR (/var/tmp/muster-hosts) then holds `hosts.txt`, a host a line, and `ssh_config`: `ssh -F DIR/ssh_config node01`, as `ops`, who may
# use sudo without a password, or as `root@node01`. Their keys are DIR/key and in DIR/known_hosts. `down` also undoes an `up` that was
# broken off.
set -euo pipefail
usage() { sed -n '6,10s/^#   //p' "$0" >&2; exit 2; }
[[ $# -ge 1 ]] || usage
here=$(cd "$(dirname "$0")" && pwd)
verb=$1
shift
count=8
all=0
dir=/var/tmp/muster-hosts
while [[ ${1:-} == --* ]]; do
  case $verb$1 in
    up--count) count=${2:-}; shift; [[ $# -eq 0 ]] || shift ;;
    *--dir) dir=${2:-}; shift; [[ $# -eq 0 ]] || shift ;;
    down--all) all=1; shift ;;
    *) usage ;;
  esac
done
[[ $count =~ ^[1-9][0-9]?$ ]] || { echo "hosts.sh: --count takes 1 to 99" >&2; exit 2; }
[[ $dir =~ ^(/[A-Za-z0-9_.-]+)+$ ]] || { echo "hosts.sh: --dir takes an absolute path of letters, digits and . _ -" >&2; exit 2; }
[[ $EUID -eq 0 ]] || { echo "hosts.sh: namespaces and mounts need root" >&2; exit 1; }
tag=mh$(printf %s "$dir" | cksum | cut -c1-6)   # names this folder's namespace, interfaces and control groups
suites=(bookworm trixie)
name_of() { printf 'node%02d' "$1"; }
# The process that made a host's namespaces, and is outside of its PID namespace.
maker() { pgrep -o -f "^unshare --mount .* bash $dir/hosts/$1/init $1 "; }
inside() { pgrep -P "$(maker "$1")" | head -n 1; }
enter() { local pid=$1; shift; nsenter --target "$pid" --mount --uts --pid --net --root --wd "$@"; }
# A host's control group of one controller, in the first or second version of control groups.
group_of() {  # group_of CONTROLLER NAME
  if [[ -d /sys/fs/cgroup/$1 ]]; then echo "/sys/fs/cgroup/$1/$tag-$2"; else echo "/sys/fs/cgroup/$tag-$2"; fi
}
limit_drive() {  # limit_drive NAME BYTES-A-SECOND
  local group device
  device=$(cat "$dir/hosts/$1/device")
  group=$(group_of blkio "$1")
  if [[ -e $group/io.max ]]; then echo "$device rbps=$2" >"$group/io.max"; else echo "$device $2" >"$group/blkio.throttle.read_bps_device"; fi
}
limit_link() {  # limit_link NAME RATE: both ways
  ip netns exec "$tag" tc qdisc replace dev "$1" root tbf rate "$2" burst 64k latency 200ms
  nsenter --target "$(maker "$1")" --net tc qdisc replace dev eth0 root tbf rate "$2" burst 64k latency 200ms
}

base_of() {  # base_of SUITE: made once
  local base=$dir/base/$1
  [[ ! -e $base/.done ]] || return 0
  echo "making the root of $1 ..." >&2
  rm -rf --one-file-system "$base"
  mkdir -p "$dir/base"
  # In namespaces of its own: one that is killed leaves no mount and no process behind.
  unshare --mount --pid --fork --kill-child mmdebstrap --quiet --variant=minbase --dpkgopt=force-unsafe-io \
    --include=openssh-server,sudo,iproute2,procps,nftables "$1" "$base" >"$dir/base/$1.log" 2>&1 ||
    { tail -n 5 "$dir/base/$1.log" >&2; return 1; }
  chroot "$base" useradd -m -s /bin/bash ops
  chroot "$base" usermod -p '*' ops   # no password, and not locked: sshd without PAM rejects logins to a locked account
  echo 'ops ALL=(ALL) NOPASSWD: ALL' >"$base/etc/sudoers.d/ops"
  chmod 0440 "$base/etc/sudoers.d/ops"
  rm -f "$base"/etc/ssh/ssh_host_*
  : >"$base/.done"
}

# What its /sys, /proc and kernel log show of a host's machine: lab/hosts_init.sh mounts it.
make_machine() {  # make_machine NAME FOLDER
  local dmi=$2/dmi disk=$2/block/nvme0n1 uuid
  uuid=$(cat /proc/sys/kernel/random/uuid)
  mkdir -p "$dmi" "$disk/device" "$disk/queue" "$disk/holders"
  echo SIMULATED >"$dmi/sys_vendor"
  echo "Namespace host" >"$dmi/product_name"
  echo "SIM-${uuid:0:8}" >"$dmi/product_serial"
  echo "$uuid" >"$dmi/product_uuid"
  echo 1.0.0 >"$dmi/bios_version"
  chmod 0400 "$dmi/product_serial" "$dmi/product_uuid"
  echo $((256 << 11)) >"$disk/size"
  echo 0 | tee "$disk/removable" "$disk/hidden" "$disk/ro" "$disk/queue/rotational" >/dev/null
  echo 512 >"$disk/queue/logical_block_size"
  echo "SIMULATED drive" >"$disk/device/model"
  echo "SIM-${uuid:24:12}" >"$disk/device/serial"
  echo 1.0 >"$disk/device/firmware_rev"
  echo "0.05 0.03 0.01 1/60 100" >"$2/loadavg"
  echo "6,1,1000000,-;SIMULATED kernel log" >"$2/kmsg"
  chmod 0600 "$2/kmsg"
  truncate -s 256M "$2/drive"
}

start_host() {  # start_host NAME: its processes and its link
  local name=$1 host=$dir/hosts/$1 i tries=0
  i=$((10#${name#node}))
  for controller in blkio memory; do
    mkdir -p "$(group_of $controller "$name")"
    echo "$BASHPID" >"$(group_of $controller "$name")/cgroup.procs"
  done
  setsid unshare --mount --uts --net --pid --fork --kill-child bash "$host/init" "$name" "$host" "$dir/base/$(cat "$host/suite")" \
    >"$host/log" 2>&1 </dev/null &
  local pid=$!
  for controller in blkio memory; do echo "$BASHPID" >"$(dirname "$(group_of $controller "$name")")/cgroup.procs"; done
  until [[ -n $(maker "$name") && $(readlink "/proc/$pid/ns/net") != $(readlink /proc/self/ns/net) ]]; do
    tries=$((tries + 1))
    [[ $tries -lt 200 ]] || return 1
    sleep 0.05
  done
  ip -n "$tag" link add "$name" type veth peer name eth0 netns "$pid"
  ip -n "$tag" link set "$name" master hosts up
  nsenter --target "$pid" --net ip -batch - <<LINK
link set lo up
link set eth0 address $(printf '02:63:00:00:00:%02x' "$i") up
address add 10.63.0.$i/24 dev eth0
LINK
  limit_link "$name" 100mbit
  limit_drive "$name" 100000000
}

make_host() {  # make_host I
  local i=$1 name suite host home
  name=$(name_of "$i")
  suite=${suites[$(((i - 1) % ${#suites[@]}))]}
  host=$dir/hosts/$name
  mkdir "$host"
  echo "$BASHPID" >"$host/made_by"
  mkdir -p "$host/upper/etc/ssh" "$host/upper/root/.ssh" "$host/upper/home/ops/.ssh" "$host/work" "$host/root"
  cp "$here/hosts_init.sh" "$host/init"
  echo "$suite" >"$host/suite"
  ssh-keygen -q -t ed25519 -N "" -C "$name" -f "$host/upper/etc/ssh/ssh_host_ed25519_key"
  echo "$name" >"$host/upper/etc/hostname"
  tr -d - </proc/sys/kernel/random/uuid >"$host/upper/etc/machine-id"
  { echo "127.0.0.1 localhost"; for ((j = 1; j <= count; j++)); do echo "10.63.0.$j $(name_of "$j")"; done; } >"$host/upper/etc/hosts"
  for home in "$host/upper/root" "$host/upper/home/ops"; do
    install -m 0600 "$dir/key.pub" "$home/.ssh/authorized_keys"
    chmod 0700 "$home/.ssh" "$home"
  done
  chown -R "$(stat -c %u:%g "$dir/base/$suite/home/ops")" "$host/upper/home/ops"
  make_machine "$name" "$host/machine"
  local loop
  loop=$(losetup --find --show "$host/machine/drive")
  echo "$((0x$(stat -c %t "$loop"))):$((0x$(stat -c %T "$loop")))" >"$host/device"
  start_host "$name"
}

# A process of an `up` that was killed may still be making a host.
stop_making() {
  local file pid
  for file in "$dir"/hosts/*/made_by; do
    pid=$(cat "$file" 2>/dev/null) || continue
    if ! { tr '\0' ' ' <"/proc/$pid/cmdline"; } 2>/dev/null | grep -q 'hosts\.sh up'; then continue; fi
    kill -KILL "$pid" 2>/dev/null || true
    while [[ -e /proc/$pid ]] && ! grep -q '^State:.Z' "/proc/$pid/status" 2>/dev/null; do sleep 0.05; done
  done
}
# All processes of a host are in its control group, also before it has namespaces.
kill_host() {  # kill_host NAME
  local group pid tries=0
  group=$(group_of memory "$1")
  while [[ -d $group && $tries -lt 400 ]]; do
    while read -r pid; do kill -KILL "$pid" 2>/dev/null || true; done <"$group/cgroup.procs"
    [[ -s $group/cgroup.procs ]] || break
    tries=$((tries + 1))
    sleep 0.02
  done
  for group in "$(group_of memory "$1")" "$(group_of blkio "$1")"; do
    for ((tries = 0; tries < 100; tries++)); do
      if [[ ! -d $group ]] || rmdir "$group" 2>/dev/null; then break; fi
      sleep 0.02
    done
  done
}

down() {
  local loop group tries=0
  stop_making
  for group in /sys/fs/cgroup/{,blkio/,memory/}"$tag"-node*; do [[ ! -d $group ]] || kill_host "${group##*"$tag"-}"; done
  ! ip netns list | cut -d' ' -f1 | grep -qx "$tag" || ip netns delete "$tag"
  while read -r loop; do losetup -d "$loop"; done < <(losetup -l -n -O NAME,BACK-FILE | awk -v dir="$dir/hosts/" 'index($2, dir) == 1 { print $1 }')
  while mountpoint -q "$dir/hosts" && ! umount "$dir/hosts" 2>/dev/null; do
    tries=$((tries + 1))   # the last process of a host is gone before its mounts are
    [[ $tries -lt 100 ]] || { umount -l "$dir/hosts"; break; }
    sleep 0.1
  done
  rm -rf --one-file-system "${dir:?}"/{hosts,hosts.txt,ssh_config,known_hosts,key,key.pub}
  if [[ $all -eq 1 ]]; then rm -rf --one-file-system "${dir:?}/base"; fi
  [[ ! -d $dir ]] || rmdir --ignore-fail-on-non-empty "$dir"
}

break_off() {  # of this `up`: what it has begun
  local job
  for job in $(jobs -p); do kill -KILL "$job" 2>/dev/null || true; done
  wait
}
answers() {  # answers I: its sshd
  [[ $(ip netns exec "$tag" timeout 2 bash -c "head -c 4 </dev/tcp/10.63.0.$1/22" 2>/dev/null) == SSH- ]]
}

up() {
  local tool i name jobs=() tries
  for tool in mmdebstrap ip tc ssh-keygen unshare socat losetup; do
    command -v $tool >/dev/null || { echo "hosts.sh: $tool is missing: run apt-get install mmdebstrap iproute2 openssh-client util-linux mount socat" >&2; exit 1; }
  done
  [[ ! -e $dir/hosts ]] || { echo "hosts.sh: $dir already holds hosts: run lab/hosts.sh down --dir $dir" >&2; exit 1; }
  [[ -d /sys/fs/cgroup/blkio || ! -e /sys/fs/cgroup/cgroup.subtree_control ]] || echo "+io +memory" >/sys/fs/cgroup/cgroup.subtree_control
  mkdir -p "$dir"
  for suite in "${suites[@]}"; do base_of "$suite" & jobs+=($!); done
  for i in "${jobs[@]}"; do wait "$i" || { wait; exit 1; }; done
  trap 'status=$?; trap "" INT TERM HUP; [[ $status -eq 0 ]] || { break_off; down; }; exit $status' EXIT
  trap 'exit 130' INT TERM HUP
  mkdir "$dir/hosts"
  mount -t tmpfs -o size=4g,mode=755 tmpfs "$dir/hosts"
  ssh-keygen -q -t ed25519 -N "" -C hosts -f "$dir/key"
  ip netns add "$tag"
  ip -n "$tag" -batch - <<BRIDGE
link set lo up
link add hosts type bridge
address add 10.63.0.254/24 dev hosts
link set hosts up
BRIDGE
  cat >"$dir/ssh_config" <<CONFIG
Host node*
  User ops
  IdentityFile $dir/key
  IdentitiesOnly yes
  UserKnownHostsFile $dir/known_hosts
  ProxyCommand ip netns exec $tag socat - TCP:%h:%p
CONFIG
  jobs=()
  for ((i = 1; i <= count; i++)); do
    name=$(name_of "$i")
    printf 'Host %s\n  HostName 10.63.0.%s\n' "$name" "$i" >>"$dir/ssh_config"
    echo "$name address=10.63.0.$i" >>"$dir/hosts.txt"
    make_host "$i" &
    jobs+=($!)
  done
  for i in "${jobs[@]}"; do wait "$i" || { echo "hosts.sh: a host could not be made" >&2; exit 1; }; done
  for ((i = 1; i <= count; i++)); do
    name=$(name_of "$i")
    echo "10.63.0.$i $(cut -d' ' -f1,2 "$dir/hosts/$name/upper/etc/ssh/ssh_host_ed25519_key.pub")" >>"$dir/known_hosts"
    for ((tries = 0; tries < 300; tries++)); do answers "$i" && break; sleep 0.1; done
    [[ $tries -lt 300 ]] || { cat "$dir/hosts/$name/log" >&2; echo "hosts.sh: $name does not answer" >&2; exit 1; }
  done
  echo "$count SIMULATED hosts: $dir/hosts.txt; ssh -F $dir/ssh_config node01; lab/hosts.sh down"
}

running() {  # running NAME: its process 1, or the end
  if [[ ! $1 =~ ^node[0-9]{2}$ ]] || ! inside "$1" 2>/dev/null; then echo "hosts.sh: no host $1 runs in $dir" >&2; exit 1; fi
}

case $verb in
  up) [[ $# -eq 0 ]] || usage; up ;;
  down) [[ $# -eq 0 ]] || usage; down ;;
  run)
    [[ $# -ge 2 ]] || usage
    pid=$(running "$1")
    shift
    enter "$pid" "$@" ;;
  fault)
    [[ $# -eq 2 ]] || usage
    pid=$(running "$1")
    # shellcheck source=lab/hosts_fault.sh
    source "$here/hosts_fault.sh"
    plant "$1" "$2" ;;
  list)
    [[ $# -eq 0 ]] || usage
    for host in "$dir"/hosts/*/; do
      [[ -d $host ]] || continue
      name=$(basename "$host")
      echo "$name $(cat "$host/suite") $(maker "$name" || echo ended)"
    done ;;
  *) usage ;;
esac
