#!/usr/bin/env bash
# Running hosts to try things on, without virtual machines: each is a root of its own (Debian 12 and 13 in turn) with sshd, in mount, PID,
# UTS and network namespaces of its own, on a bridge that no interface of this machine is in. They share its kernel, processors and drives:
# SIMULATED hosts, good for trying connections, privileges and faults, not for speeds. Needs root.
#   lab/hosts.sh up [--count N] [--dir DIR]     makes them; the roots are kept in DIR/base, so the next time takes seconds
#   lab/hosts.sh down [--dir DIR]               ends them and removes DIR, but for DIR/base; with --all that, too
#   lab/hosts.sh run NAME COMMAND...            as root inside a host [--dir DIR before NAME]
#   lab/hosts.sh list                           name, Debian's release, process, of those that run
# DIR (/var/tmp/muster-hosts) then holds `hosts.txt`, a name a line, and `ssh_config`: `ssh -F DIR/ssh_config node01`, as `ops`, who
# may use sudo without a password, or as `root@node01`. Their keys are DIR/key and in DIR/known_hosts.
set -euo pipefail
usage() { sed -n '5,8s/^#   //p' "$0" >&2; exit 2; }
[[ $# -ge 1 ]] || usage
verb=$1
shift
count=8
all=0
dir=/var/tmp/muster-hosts
while [[ ${1:-} == --* ]]; do
  case $1 in
    --count) count=${2:?}; shift 2 ;;
    --dir) dir=${2:?}; shift 2 ;;
    --all) all=1; shift ;;
    *) usage ;;
  esac
done
[[ $count =~ ^[1-9][0-9]?$ ]] || { echo "hosts.sh: --count takes 1 to 99" >&2; exit 2; }
[[ $dir == /?* && $dir != *[[:space:]]* ]] || { echo "hosts.sh: --dir takes an absolute path without spaces" >&2; exit 2; }
[[ $EUID -eq 0 ]] || { echo "hosts.sh: namespaces and mounts need root" >&2; exit 1; }
tag=mh$(printf %s "$dir" | cksum | cut -c1-6)   # of this folder's namespaces; an interface's name has 15 characters at most
suites=(bookworm trixie)
name_of() { printf 'node%02d' "$1"; }
# The process that made a host's namespaces. Its number may be another process' by now: only one that was started for this folder counts.
maker() {
  local pid
  pid=$(cat "$dir/hosts/$1/pid" 2>/dev/null) || return 1
  tr '\0' ' ' <"/proc/$pid/cmdline" 2>/dev/null | grep -qF -- "$dir/hosts/$1/init" && echo "$pid"
}
inside() { pgrep -P "$(maker "$1")" | head -n 1; }

base_of() {  # base_of SUITE: made once
  local base=$dir/base/$1
  [[ ! -e $base/.done ]] || return 0
  echo "making the root of $1 ..." >&2
  rm -rf "$base"
  mkdir -p "$dir/base"
  mmdebstrap --quiet --variant=minbase --include=openssh-server,sudo,iproute2,procps,pciutils,python3-minimal "$1" "$base" \
    >"$dir/base/$1.log" 2>&1 || { tail -n 5 "$dir/base/$1.log" >&2; exit 1; }
  chroot "$base" useradd -m -s /bin/bash ops
  chroot "$base" usermod -p '*' ops   # no password, and not locked: sshd without PAM takes a locked account for closed
  echo 'ops ALL=(ALL) NOPASSWD: ALL' >"$base/etc/sudoers.d/ops"
  chmod 0440 "$base/etc/sudoers.d/ops"
  rm -f "$base"/etc/ssh/ssh_host_*
  : >"$base/.done"
}

make_host() {  # make_host I
  local i=$1 name suite host
  name=$(name_of "$i")
  suite=${suites[$(((i - 1) % ${#suites[@]}))]}
  host=$dir/hosts/$name
  mkdir -p "$host/upper/etc/ssh" "$host/upper/root/.ssh" "$host/upper/home/ops/.ssh" "$host/work" "$host/root"
  echo "$suite" >"$host/suite"
  ssh-keygen -q -t ed25519 -N "" -C "$name" -f "$host/upper/etc/ssh/ssh_host_ed25519_key"
  echo "10.63.0.$i $(cut -d' ' -f1,2 "$host/upper/etc/ssh/ssh_host_ed25519_key.pub")" >>"$dir/known_hosts"
  echo "$name" >"$host/upper/etc/hostname"
  tr -d - </proc/sys/kernel/random/uuid >"$host/upper/etc/machine-id"
  { echo "127.0.0.1 localhost"; for ((j = 1; j <= count; j++)); do echo "10.63.0.$j $(name_of "$j")"; done; } >"$host/upper/etc/hosts"
  for home in "$host/upper/root" "$host/upper/home/ops"; do
    install -m 0600 "$dir/key.pub" "$home/.ssh/authorized_keys"
    chmod 0700 "$home/.ssh" "$home"
  done
  chown -R "$(chroot "$dir/base/$suite" id -u ops):$(chroot "$dir/base/$suite" id -g ops)" "$host/upper/home/ops"
  ip netns add "$tag-$name"
  ip -n "$tag" link add "$name" type veth peer name eth0 netns "$tag-$name"
  ip -n "$tag" link set "$name" master hosts up
  ip -n "$tag-$name" link set lo up
  ip -n "$tag-$name" address add "10.63.0.$i/24" dev eth0
  ip -n "$tag-$name" link set eth0 up
  cat >"$host/init" <<INIT
#!/bin/bash
# Process 1 of $name's PID namespace.
set -euo pipefail
hostname $name
mount -t overlay overlay -o lowerdir=$dir/base/$suite,upperdir=$host/upper,workdir=$host/work $host/root
cd $host/root
mount -t proc proc proc
mount -t sysfs -o ro sysfs sys
mount -t tmpfs -o mode=755 tmpfs run
mount -t tmpfs -o mode=1777 tmpfs tmp
mount -t tmpfs -o mode=755 tmpfs dev
mkdir -p dev/pts run/sshd
mkdir -m 1777 dev/shm
mount -t tmpfs -o mode=1777 tmpfs dev/shm
for device in null zero full random urandom tty; do : >dev/\$device; mount --bind /dev/\$device dev/\$device; done
mount -t devpts -o newinstance,ptmxmode=0666,mode=620 devpts dev/pts
ln -s pts/ptmx dev/ptmx
ln -s /proc/self/fd dev/fd
exec chroot $host/root /usr/sbin/sshd -D -e
INIT
  setsid ip netns exec "$tag-$name" unshare --mount --uts --pid --fork --kill-child bash "$host/init" >"$host/log" 2>&1 </dev/null &
  echo $! >"$host/pid"
}

ends() {  # ends NAME: the host's processes, by the one that made its namespaces
  local pid tries=0
  pid=$(maker "$1") || return 0
  kill -KILL "$pid" 2>/dev/null || return 0
  while kill -0 "$pid" 2>/dev/null && [[ $tries -lt 100 ]]; do sleep 0.1; tries=$((tries + 1)); done
}

down() {
  local host
  for host in "$dir"/hosts/*/; do [[ ! -d $host ]] || ends "$(basename "$host")"; done
  local space
  for space in $(ip netns list | cut -d' ' -f1); do [[ ! $space =~ ^$tag(-node[0-9]{2})?$ ]] || ip netns delete "$space"; done
  ! mountpoint -q "$dir/hosts" || umount "$dir/hosts"
  rm -rf "${dir:?}"/{hosts,hosts.txt,ssh_config,known_hosts,key,key.pub}
  if [[ $all -eq 1 ]]; then
    rm -rf "${dir:?}/base"
    rmdir "$dir"
  fi
}

up() {
  for tool in mmdebstrap ip ssh-keygen unshare socat; do
    command -v $tool >/dev/null || { echo "hosts.sh: no $tool: apt-get install mmdebstrap iproute2 openssh-client util-linux socat" >&2; exit 1; }
  done
  [[ ! -e $dir/hosts ]] || { echo "hosts.sh: $dir holds hosts already: lab/hosts.sh down --dir $dir" >&2; exit 1; }
  mkdir -p "$dir"
  for suite in "${suites[@]}"; do base_of "$suite"; done
  trap 'status=$?; [[ $status -eq 0 ]] || down; exit $status' EXIT
  mkdir "$dir/hosts"
  mount -t tmpfs -o size=4g,mode=755 tmpfs "$dir/hosts"
  ssh-keygen -q -t ed25519 -N "" -C hosts -f "$dir/key"
  : >"$dir/known_hosts"
  ip netns add "$tag"
  ip -n "$tag" link set lo up
  ip -n "$tag" link add hosts type bridge
  ip -n "$tag" address add 10.63.0.254/24 dev hosts
  ip -n "$tag" link set hosts up
  cat >"$dir/ssh_config" <<CONFIG
Host node*
  User ops
  IdentityFile $dir/key
  IdentitiesOnly yes
  UserKnownHostsFile $dir/known_hosts
  ProxyCommand ip netns exec $tag socat - TCP:%h:%p
CONFIG
  local i name tries
  for ((i = 1; i <= count; i++)); do
    name=$(name_of "$i")
    printf 'Host %s\n  HostName 10.63.0.%s\n' "$name" "$i" >>"$dir/ssh_config"
    echo "$name" >>"$dir/hosts.txt"
    make_host "$i"
  done
  for ((i = 1; i <= count; i++)); do
    tries=0
    until [[ $(ip netns exec "$tag" timeout 2 bash -c "head -c 4 </dev/tcp/10.63.0.$i/22" 2>/dev/null) == SSH- ]]; do
      tries=$((tries + 1))
      [[ $tries -lt 100 ]] || { cat "$dir/hosts/$(name_of "$i")/log" >&2; echo "hosts.sh: $(name_of "$i") does not answer" >&2; exit 1; }
      sleep 0.1
    done
  done
  echo "$count SIMULATED hosts: $dir/hosts.txt; ssh -F $dir/ssh_config node01; lab/hosts.sh down"
}

case $verb in
  up) [[ $# -eq 0 ]] || usage; up ;;
  down) [[ $# -eq 0 ]] || usage; down ;;
  run)
    [[ $# -ge 2 ]] || usage
    name=$1
    shift
    [[ $name =~ ^node[0-9]{2}$ ]] && pid=$(inside "$name") || { echo "hosts.sh: no host $name runs in $dir" >&2; exit 1; }
    exec nsenter --target "$pid" --mount --uts --pid --net --root --wd=/ "$@" ;;
  list)
    for host in "$dir"/hosts/*/; do
      [[ -d $host ]] || continue
      name=$(basename "$host")
      echo "$name $(cat "$host/suite") $(maker "$name" || echo ended)"
    done ;;
  *) usage ;;
esac
