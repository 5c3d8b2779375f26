#!/usr/bin/env bash
# From a fresh Debian machine to an accepted (virtual) cluster: installs what is needed, builds, starts a lab of three
# bare-metal machines in QEMU, runs `muster up` on it and shows the report.
#   ./quickstart.sh            leaves the lab running, so that you can look around; goes on where an earlier run stopped
#   ./quickstart.sh --down     stops it and leaves nothing behind
set -euo pipefail
cd "$(dirname "$0")"
spec=lab/quickstart.yaml
# Of the lab's own controller and of no other that this machine may run or reach.
export MUSTER_LAB_DIR=${MUSTER_LAB_DIR:-${XDG_STATE_HOME:-${HOME:-/root}/.local/state}/muster/lab/quickstart}
export MUSTER_SOCKET=$MUSTER_LAB_DIR/musterd.sock
unset MUSTER_URL
# Measured on two cores without KVM (docs/benchmarks.md). Compiling uses all cores; for the lab more cores, or KVM, were not measured.
build_processor_min=7
lab_min=7

stop() { echo "quickstart: $*" >&2; exit 2; }
[[ $# -eq 0 || "$*" == --down ]] || { echo "usage: ./quickstart.sh [--down]" >&2; exit 2; }
[[ $EUID -eq 0 ]] || stop "the lab makes its own network namespace, which needs root: run \`sudo ./quickstart.sh $*\`"

if [[ "${1:-}" == --down ]]; then
  [[ -e $MUSTER_LAB_DIR ]] || { echo "Nothing is up: there is no lab in $MUSTER_LAB_DIR."; exit 0; }
  [[ -x build/muster ]] || stop "$MUSTER_LAB_DIR has a lab, and build/muster, which takes it down, is missing: run \`scripts/build.sh dev muster\`"
  exec build/muster lab down
fi

# What would fail only after the long build.
available_mib() { awk '/^MemAvailable:/ { print int($2 / 1024) }' /proc/meminfo; }
free_gib() {  # free_gib PATH: of the file system that has it, or will have it
  local path=$1
  until [[ -e $path ]]; do path=$(dirname "$path"); done
  df -Pk "$path" | awk 'NR == 2 { print int($4 / 1048576) }'
}
has_room() {  # has_room PATH GIB WHAT
  local free
  free=$(free_gib "$1")
  [[ $free -ge $2 ]] || stop "$3 needs $2 GiB of disk, and $1 has $free GiB free: free some space, then start again"
}
check_machine() {
  command -v apt-get >/dev/null || stop "this needs Debian 12 or 13: there is no apt-get"
  [[ $(uname -m) == x86_64 ]] || stop "this needs an x86-64 machine, and this one is $(uname -m)"
  [[ -x build/muster ]] || has_room "$PWD" 5 "the build"
  [[ ! -e $MUSTER_LAB_DIR/up.json ]] || return 0   # the lab has its memory and disk already
  unshare -n true 2>/dev/null || stop "the lab needs network namespaces, which this container does not permit: use a machine or a privileged container"
  [[ -e /dev/net/tun ]] || modprobe -q tun 2>/dev/null || stop "the lab needs /dev/net/tun: run \`modprobe tun\` on the host"
  [[ $(available_mib) -ge 7000 ]] ||
    stop "the three virtual machines need 7000 MiB of memory, and $(available_mib) MiB are available: end other programs, then start again"
  has_room "$MUSTER_LAB_DIR" 10 "the lab"
}
plan_build() {
  local cores compile by_memory=$(($(available_mib) / 900))   # what a compiler takes at most, in MiB
  cores=$(nproc)
  [[ $by_memory -ge $cores ]] || cores=$((by_memory > 0 ? by_memory : 1))
  export CMAKE_BUILD_PARALLEL_LEVEL=${CMAKE_BUILD_PARALLEL_LEVEL:-$cores}
  compile=$(((build_processor_min + cores - 1) / cores))
  if [[ -x build/muster ]]; then
    echo "The lab takes about $lab_min min. There is a build already: only what has changed since is compiled, at most about $compile min more."
  else
    echo "This takes about $((compile + lab_min)) min: about $compile to compile, on $cores processors, and $lab_min for the lab."
  fi
  echo "You can interrupt it (Ctrl-C); started again, it goes on where it stopped."
}

step=""
finish() {
  local status=$?   # the last thing that a run says: what to do next, and where the logs are
  trap - EXIT
  case $step:$status in
    :*) exit "$status" ;;
    up:0 | up:5)
      cat <<TEXT

The report is muster-report/report.html. The cluster is still running:
  build/muster status                  the nodes
  build/muster lab ssh node01          a shell on a node
  build/muster reimage node02 --yes    put one node back to the declared state, data kept
  ./quickstart.sh --down               stop everything
The controller's log is $MUSTER_LAB_DIR/musterd.log.
TEXT
      exit $status ;;
  esac
  echo
  if [[ $status -gt 128 ]]; then echo "Interrupted during: $step."; else echo "Failed with exit status $status: $step. The reason is above."; fi
  case $step in
    packages) echo "Next: correct what apt reports, then ./quickstart.sh again." ;;
    build) echo "Next: ./quickstart.sh again. It compiles only what is not compiled yet." ;;
    lab) echo "Next: ./quickstart.sh again. Logs: serve.log and musterd.log in $MUSTER_LAB_DIR." ;;
    up) cat <<TEXT ;;
The lab is still running. Next:
  build/muster status                  the nodes
  build/muster why NODE                what a node waits for, or why it failed
  ./quickstart.sh                      go on from here
  ./quickstart.sh --down               stop everything, to begin again
Logs: $MUSTER_LAB_DIR/musterd.log, consoles in $MUSTER_LAB_DIR/nodes/NODE/console.log.
TEXT
  esac
  exit $status
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

# All that this run starts in the foreground has the lock too: what a killed run left is waited for, not disturbed.
exec 9<"$spec"
if ! flock -n 9; then
  echo "Another run of this script is still at work, or what it had started: waiting for its end."
  flock 9
fi
check_machine
plan_build
step=packages
echo "==> packages"
scripts/deps.sh build lab
step=build
echo "==> build"
scripts/build.sh dev muster musterd muster-agent muster-accept muster-accept-nvml muster-mpi-check
step=lab
echo "==> lab: three virtual machines, each with its own BMC, drives and network card"
[[ ! -e $MUSTER_LAB_DIR/up.json ]] || was_up=1
build/muster lab up "$spec" --replace-partial
step=up
echo "==> muster up"
[[ -z ${was_up:-} ]] || build/muster watch --until-idle   # a run that an earlier start of this script began
status=0
build/muster up "$spec" --yes --report muster-report || status=$?
# Where nothing was left to do, `up` writes no report.
[[ $status -ne 0 || muster-report/report.html -nt $MUSTER_LAB_DIR/up.json ]] || build/muster report --dir muster-report >/dev/null
exit $status
