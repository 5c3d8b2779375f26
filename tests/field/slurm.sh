#!/bin/bash
# For cases with a real Slurm: munged, slurmctld and any number of slurmds (n1, n2 ...) on one machine, from this system's
# packages, or from those of a tree if SLURM_ROOT is set: that of root.sh, or for 24.11 what mmdebstrap --variant=minbase
# --include=slurmctld,slurmd,slurm-client,munge makes of Debian 13. Sourced by try.sh, which tests/field/run.sh runs in
# namespaces of its own; there /run and Slurm's folders are empty.
#   slurm_conf N [WORDS]        writes slurm.conf for N nodes, each with WORDS ("RealMemory=1"); add lines to $etc/slurm.conf
#   slurm_up                    starts all, and returns when every node has registered
#   ctld start|stop|kill        slurmctld
#   slurmd start|stop N1 [OPTIONS]
#   slurm COMMAND...            runs it where Slurm is
#   state N1                    its long word and reason: "idle|none"
#   within SECONDS COMMAND...   repeats it until it succeeds
#   is GLOB COMMAND...          its output matches GLOB
#   refused COMMAND...          it fails
#   slurm_step apply|check NODE STATE [MORE]   the step slurm_node, after root.sh and with SLURM_ROOT=$root; MORE: '"reason":"x"'
SLURM_ROOT=${SLURM_ROOT:-}
# shellcheck disable=SC2034
etc=$SLURM_ROOT/etc/slurm logs=$SLURM_ROOT/var/log/slurm run=$SLURM_ROOT/run
slurm() { ${SLURM_ROOT:+chroot "$SLURM_ROOT"} env PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 "$@"; }
for program in munged slurmctld slurmd sinfo; do
  slurm which "$program" > /dev/null || { echo "needs $program${SLURM_ROOT:+ in $SLURM_ROOT}"; exit 77; }
done
for folder in /proc /dev /sys; do
  mountpoint -q "$SLURM_ROOT$folder" || mount --rbind "$folder" "$SLURM_ROOT$folder" || exit 1
done
for folder in /etc/slurm /var/lib/slurm /var/log/slurm /var/spool /etc/munge /run; do
  mkdir -p "$SLURM_ROOT$folder" && mount -t tmpfs tmpfs "$SLURM_ROOT$folder" || exit 1
done
mkdir -p "$run/munge" "$SLURM_ROOT/var/lib/munge" "$SLURM_ROOT/var/log/munge" "$SLURM_ROOT/var/lib/slurm/ctld"
chmod 755 "$run/munge"
# Slurm's getaddrinfo (AI_ADDRCONFIG) finds no address on a machine that has loopback only.
ip link set lo up
ip link add slurm0 type veth peer name slurm1 || { echo "needs veth"; exit 77; }
ip addr add 10.217.0.1/24 dev slurm0
ip link set slurm0 up

within() { # SECONDS COMMAND...
  local end=$((SECONDS + $1))
  shift
  until "$@"; do
    [ $SECONDS -lt $end ] || return 1
    sleep 0.2
  done
}
is() { # GLOB COMMAND...
  # shellcheck disable=SC2053
  [[ $("${@:2}" 2> /dev/null) == $1 ]]
}
refused() { ! "$@"; }
state() { slurm sinfo -h -N -n "$1" -o '%T|%E' | head -n 1; }
state_of_job() { slurm squeue -h -t all -j "$1" -o %T; }

slurm_conf() { # N [WORDS]
  slurm_nodes=$(seq -f 'n%g' "$1")
  {
    printf '%s\n' ClusterName=field "SlurmctldHost=$(hostname -s)(10.217.0.1)" SlurmUser=root SlurmdUser=root AuthType=auth/munge \
      StateSaveLocation=/var/lib/slurm/ctld 'SlurmdSpoolDir=/var/lib/slurm/%n' SlurmctldPidFile=/run/slurmctld.pid \
      'SlurmdPidFile=/run/slurmd.%n.pid' SlurmctldLogFile=/var/log/slurm/ctld.log 'SlurmdLogFile=/var/log/slurm/%n.log' \
      ProctrackType=proctrack/linuxproc TaskPlugin=task/none SelectType=select/cons_tres SelectTypeParameters=CR_CPU MpiDefault=none \
      ReturnToService=2 JobAcctGatherType=jobacct_gather/none SchedulerParameters=nohold_on_prolog_fail,sched_interval=2 \
      PrologFlags=Alloc
    for node in $slurm_nodes; do
      echo "NodeName=$node NodeHostname=$(hostname -s) NodeAddr=10.217.0.1 Port=$((17000 + ${node#n})) CPUs=1 ${2:-} State=UNKNOWN"
    done
    echo "PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP"
  } > "$etc/slurm.conf"
  # Cgroups of other machines' systems are none of these daemons' business. Slurm 22.05 has no such word and needs none.
  slurm slurmctld -V | grep -q ' 2[012]\.' || echo CgroupPlugin=disabled > "$etc/cgroup.conf"
}
ctld() { # start|stop|kill
  case $1 in
    start) slurm slurmctld && within 60 slurm scontrol ping > /dev/null ;;
    stop | kill)
      local pid
      pid=$(cat "$run/slurmctld.pid")
      if [ "$1" = kill ]; then kill -9 "$pid"; else kill "$pid"; fi
      within 30 eval "! kill -0 $pid 2> /dev/null"
      ;;
  esac
}
slurmd() { # start|stop NODE [OPTIONS]
  if [ "$1" = start ]; then
    mkdir -p "$SLURM_ROOT/var/lib/slurm/$2"
    slurm slurmd -N "$2" "${@:3}"
    return
  fi
  local pid
  pid=$(cat "$run/slurmd.$2.pid")
  kill "$pid" && within 30 eval "! kill -0 $pid 2> /dev/null"
}
munge_up() {
  head -c 1024 /dev/urandom > "$SLURM_ROOT/etc/munge/munge.key"
  chmod 700 "$SLURM_ROOT/etc/munge" "$SLURM_ROOT/var/lib/munge" "$SLURM_ROOT/var/log/munge"
  chmod 400 "$SLURM_ROOT/etc/munge/munge.key"
  chown -R 0:0 "$SLURM_ROOT/etc/munge" "$SLURM_ROOT/var/lib/munge" "$SLURM_ROOT/var/log/munge"
  slurm munged --force && within 20 eval "slurm munge -n > /dev/null 2>&1"
}
slurm_up() {
  munge_up || return 1
  ctld start || return 1
  for node in $slurm_nodes; do slurmd start "$node" || return 1; done
  for node in $slurm_nodes; do within 60 is "idle|*" state "$node" || return 1; done
}
slurm_step() {
  agent "$1" slurm_node "{\"node\":\"$2\",\"state\":\"$3\"${4:+,$4}}"
}
