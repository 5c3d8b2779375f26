#!/bin/bash
# A build before the start that fails twice, then works: under a real systemd, with seconds for minutes.
. "$SRC/tests/field/nights/systemd.sh"
stub
cat > "$WORK/build" <<END
#!/bin/sh
echo build >> $WORK/builds
[ "\$(wc -l < $WORK/builds)" -gt 2 ]
END
chmod +x "$WORK/build"
printf '[Service]\nExecStartPre=%s\nRestartSec=1\n' "$WORK/build" > "$units/muster-rollout.service.d/field.conf"
boot
in_systemd systemctl start musterd.service
in_systemd systemctl start muster-rollout.service
eventually called 1
expect "the window was opened once" called 1
expect "by the third try" [ "$(wc -l < "$WORK/builds")" -eq 3 ]
eventually is muster-rollout.service ActiveState inactive
expect "and the unit is not failed" is muster-rollout.service ActiveState inactive
expect "with its own time between tries it stays within the window" \
  grep -qx "RestartSec=10min" "$SRC/systemd/muster-rollout.service"
exit $wrong
