#!/bin/bash
# For cases with a real systemd: process 1 in namespaces of its own, over units in $WORK/units. Sourced by their try.sh.
# musterd is a program that sleeps; what the unit calls as /usr/bin/muster is $WORK/muster, which a case writes. Afterwards
# `in_systemd COMMAND...`, `state UNIT PROPERTY`, `expect WHAT COMMAND...`, `eventually COMMAND...` and `exit $wrong`.
for program in unshare nsenter systemctl systemd-analyze; do
  command -v "$program" > /dev/null || { echo "needs $program"; exit 77; }
done
[ -x /lib/systemd/systemd ] || { echo "needs systemd"; exit 77; }
units=$WORK/units
mkdir -p "$units/muster-rollout.service.d" || exit 1
cp "$SRC/systemd/muster-rollout.timer" "$units/"
sed "s#/usr/bin/muster #$WORK/muster #" "$SRC/systemd/muster-rollout.service" > "$units/muster-rollout.service"
sed "s#/usr/lib/muster/rollout-failed /etc/muster/#$SRC/systemd/rollout-failed $WORK/#" "$SRC/systemd/muster-rollout-failed.service" \
  > "$units/muster-rollout-failed.service"
printf '[Service]\nExecStart=/bin/sleep infinity\n' > "$units/musterd.service"
for target in sysinit basic shutdown timers time-sync time-set field; do printf '[Unit]\nDescription=%s\n' "$target" > "$units/$target.target"; done
cat > "$WORK/pid1" <<END
mount --make-rprivate / && mount -t tmpfs tmpfs /run && mkdir -p /run/systemd /run/lock || exit 1
umount -R /sys/fs/cgroup 2> /dev/null
mount -t cgroup2 cgroup2 /sys/fs/cgroup || exit 1
mount --bind /proc/sys /proc/sys && mount -o remount,bind,ro /proc/sys || exit 1
export container=other SYSTEMD_UNIT_PATH=$units
exec /lib/systemd/systemd --system --unit=field.target --log-target=console
END
boot() {
  unshare -mpfuiC --kill-child --mount-proc bash "$WORK/pid1" > "$WORK/pid1.log" 2>&1 &
  local outer=$!
  for _ in $(seq 150); do
    pid1=$(pgrep -P "$outer") && in_systemd systemctl is-active --quiet field.target && return
    sleep 0.2
  done
  echo "needs cgroup2 and namespaces in which systemd boots: $(tail -n 1 "$WORK/pid1.log")"
  exit 77
}
in_systemd() { nsenter -t "$pid1" -m -p -C -i -u "$@" 2> /dev/null; }
state() { in_systemd systemctl show --value --property="$2" "$1"; }
is() { [ "$(state "$1" "$2")" = "$3" ]; }
called() { [ "$(wc -l < "$WORK/calls")" -eq "$1" ]; }
eventually() {
  for _ in $(seq 100); do
    "$@" && return
    sleep 0.2
  done
  return 1
}
: > "$WORK/calls"
# A command that notes how it was called and ends with the code in $WORK/code.
stub() {
  printf '#!/bin/sh\necho "$*" >> %s/calls\nexit "$(cat %s/code)"\n' "$WORK" "$WORK" > "$WORK/muster"
  chmod +x "$WORK/muster"
  echo 0 > "$WORK/code"
}
wrong=0
expect() { # WHAT COMMAND...
  local what=$1
  shift
  "$@" || { echo "not so: $what"; wrong=1; }
}
