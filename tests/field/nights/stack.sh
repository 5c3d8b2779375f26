#!/bin/bash
# For cases with Slurm, its accounting and MariaDB as the playbooks set them up: real programs of Debian 12 (this system's) and Debian 13 (the case's
# `tree`), each in a root that is thrown away, with tests/field/slurm.sh over it. Sourced by try.sh, which it runs once per release: RELEASE is 12
# or 13 then. RELEASES="13" before it: only that one; a case needs the tree only for 13.
#   root_of 12|13 FOLDER        makes such a root in FOLDER
#   step PLAYBOOK NAME [WORD=VALUE]...          a step of a playbook through muster-agent (playbook.py)
#   content PLAYBOOK NAME [WORD=VALUE]...       the text of its file
#   up [yes]                    the leader as `muster up` makes it, as far as slurmctld; with accounting.   down
#   database start|stop, dbd start|stop, controller start|stop      the daemons, as Debian's units start them; their logs: $logs
#   expect WHAT COMMAND...      and at the end: exit $wrong
if [ -z "${RELEASE:-}" ]; then
  status=0
  for release in ${RELEASES:-12 13}; do
    # The case's script again, with a machine of its own.
    RELEASE=$release unshare --mount --net --pid --uts --fork --kill-child --mount-proc bash "$CASE/try.sh"
    one=$?
    [ $one -eq 0 ] || echo "on Debian $release"
    if [ $one -ne 77 ] || [ $status -eq 0 ]; then [ $one -eq 0 ] || status=$one; fi
  done
  exit $status
fi
[ -x "$BUILD/muster-agent" ] || { echo "needs $BUILD/muster-agent"; exit 77; }

root_of() { # 12|13 FOLDER
  local lower=$TREE
  if [ "$1" = 12 ]; then
    lower=/
    grep -q '^12' /etc/debian_version || { echo "needs Debian 12"; exit 77; }
  fi
  mkdir -p "$2" && mount -t tmpfs tmpfs "$2" && mkdir "$2/upper" "$2/work" "$2/root" || exit 1
  mount -t overlay overlay -o "lowerdir=$lower,upperdir=$2/upper,workdir=$2/work" "$2/root" || { echo "needs overlayfs"; exit 77; }
  rm -rf "$2/root/var/lib/mysql" && mkdir -p "$2/root/var/lib/mysql"
  # A machine's own policy, that no service starts, is not a node's.
  rm -f "$2/root/usr/sbin/policy-rc.d"
  cp "$BUILD/muster-agent" "$2/root/usr/sbin/muster-agent"
  printf '127.0.0.1 localhost\n10.217.0.1 node01 %s\n' "$(hostname -s)" > "$2/root/etc/hosts"
}
hostname node01
root_of "$RELEASE" "$WORK/$RELEASE"
SLURM_ROOT=$WORK/$RELEASE/root
. "$SRC/tests/field/slurm.sh"
for program in slurmdbd mariadbd logrotate; do
  slurm which $program > /dev/null || { echo "needs $program${SLURM_ROOT:+ in $SLURM_ROOT}"; exit 77; }
done
mkdir -p "$run/mysqld" "$run/slurm"
slurm chown mysql: /run/mysqld /var/lib/mysql
slurm chown slurm: /run/slurm /var/log/slurm /var/lib/slurm

content() { python3 "$SRC/tests/field/nights/playbook.py" "$@" content=; }
step() { # PLAYBOOK NAME [WORD=VALUE]...
  python3 "$SRC/tests/field/nights/playbook.py" "$@" | slurm muster-agent apply >> "$WORK/agent.log" 2>&1
}
# A daemon in the foreground, until `ended`. Each program replaces the one before it, so that the signal reaches the daemon.
daemon() { # NAME USER LOG COMMAND...
  chroot "$SLURM_ROOT" env PATH=/usr/sbin:/usr/bin:/sbin:/bin setpriv --reuid "$2" --regid "$2" --init-groups "${@:4}" > "$3" 2>&1 &
  eval "$1_pid=$!"
}
user_of() { # UNIT
  sed -n 's/^User=//p' "$SLURM_ROOT/lib/systemd/system/$1.service" | grep . || echo root
}
ended() { # NAME
  local pid
  pid=$(eval "echo \${$1_pid:-}")
  [ -n "$pid" ] || return 0
  kill "$pid" 2> /dev/null
  within 60 eval "! kill -0 $pid 2> /dev/null"
}
database() {
  [ "$1" = start ] || { ended mariadbd; return; }
  [ ! -e "$SLURM_ROOT/etc/mysql/muster-before-start" ] || slurm /etc/mysql/muster-before-start || return 1
  daemon mariadbd mysql "$logs/mariadb.log" mariadbd --socket=/run/mysqld/mysqld.sock
  within 60 eval "slurm mariadb -e 'select 1' > /dev/null 2>&1"
}
dbd() {
  [ "$1" = start ] || { ended slurmdbd; return; }
  daemon slurmdbd "$(user_of slurmdbd)" "$logs/slurmdbd.out" slurmdbd -D
  within 60 eval "! kill -0 \$slurmdbd_pid 2> /dev/null || slurm sacctmgr -n show cluster > /dev/null 2>&1" && kill -0 "$slurmdbd_pid"
}
controller() {
  [ "$1" = start ] || { ended slurmctld; return; }
  daemon slurmctld "$(user_of slurmctld)" "$logs/slurmctld.out" slurmctld -D
  within 60 eval "! kill -0 \$slurmctld_pid 2> /dev/null || slurm scontrol ping 2> /dev/null | grep -q UP" && kill -0 "$slurmctld_pid"
}
# What a step runs to stop slurmctld: there is no systemd here.
printf '#!/bin/sh\n[ "$*" != "stop slurmctld" ] || : > /run/stopped\n' > "$SLURM_ROOT/usr/bin/systemctl"
chmod +x "$SLURM_ROOT/usr/bin/systemctl"
mkdir -p "$SLURM_ROOT/state"
up() { # [yes]
  if [ -n "${1:-}" ]; then
    for name in "small database" configuration "folder of the database" "before the database starts" "system tables"; do
      step accounting "$name" || return 1
    done
  fi
  step scheduler "folder for logs" && step scheduler "folder of the controller" && step scheduler configuration "accounting=${1:-}" || return 1
  if [ -n "${1:-}" ]; then
    database start && step accounting account && step accounting "copy before another release converts it" && dbd start &&
      step accounting "release of the database" && step scheduler "the database's id of the cluster" accounting=yes || return 1
  fi
  controller start
}
down() { controller stop; dbd stop; database stop; }
wrong=0
expect() { # WHAT COMMAND...
  "${@:2}" || { echo "not so: $1"; wrong=1; }
}
