#!/usr/bin/env bash
# How fast running hosts are reached: bench/run.sh accept-hosts [HOSTS]. Needs root (lab/hosts.sh), clush (Debian package clustershell), and a
# build. Last line: JSON.
# 64 SIMULATED hosts, in namespaces of this machine. `muster accept --hosts --beside-jobs`: seconds from its start until the first step of
# the first two hosts, and of every host, was measured, by its journal; processor seconds for each host, of the whole machine (the hosts
# are in it) and of the command with its ssh; proportional memory of the command and all that it starts except ssh, at its highest; the load
# and the processors in use by others before it. Beside it the seconds of `clush` of `true` on the same hosts over the same configuration
# of ssh. The better of three each, in turn. Fails if all hosts take more than 5 times clush. Goals: 4, and 2 for the first two, which are
# measured no earlier than all have answered (docs/decisions/0057).
set -euo pipefail
count=${1:-64}
muster=${MUSTER_BUILD:-build}/muster
dir=/var/tmp/muster-hosts
[[ $count =~ ^[1-9][0-9]?$ ]] || { echo "usage: bench/run.sh accept-hosts [HOSTS]   (1 to 99; 64)" >&2; exit 2; }
[[ -x $muster ]] || { echo "accept-hosts: no $muster: scripts/build.sh dev muster muster-agent muster-accept" >&2; exit 2; }
[[ $EUID -eq 0 ]] || { echo "accept-hosts: needs root" >&2; exit 2; }
command -v clush >/dev/null || { echo "accept-hosts: no clush: apt-get install clustershell" >&2; exit 2; }
[[ ! -e $dir/hosts ]] || { echo "accept-hosts: $dir holds hosts already: lab/hosts.sh down" >&2; exit 2; }
scratch=$(mktemp -d /var/tmp/muster-bench.XXXXXX)
trap 'rm -rf "$scratch"; lab/hosts.sh down' EXIT
lab/hosts.sh up --count "$count" >&2
python3 -B bench/accept_hosts.py "$muster" "$dir" "$scratch" "$count"
