#!/bin/bash
# The unit of the timer under a real systemd, with a musterd that runs, is stopped, or failed.
. "$SRC/tests/field/nights/systemd.sh"
stub
expect "the units have nothing that systemd does not know" \
  env SYSTEMD_UNIT_PATH="$units" systemd-analyze --man=no verify "$units/muster-rollout.service" "$units/muster-rollout.timer" \
  "$units/muster-rollout-failed.service"
printf '#!/bin/sh\ncat > %s/text\necho "$MONITOR_UNIT $MONITOR_EXIT_STATUS" >> %s/failures\n' "$WORK" "$WORK" > "$WORK/rollout-failed"
chmod +x "$WORK/rollout-failed"
: > "$WORK/failures"
boot
start() { in_systemd systemctl start muster-rollout.service; }

expect "with a stopped musterd it does not fail" start
expect "and is not failed" is muster-rollout.service ActiveState inactive
expect "musterd stays stopped" is musterd.service ActiveState inactive
expect "nothing was called" called 0

in_systemd systemctl start musterd.service
expect "with a musterd that runs it does not fail" start
expect "what follows a failure did not run" [ ! -s "$WORK/failures" ]
expect "the window was opened" grep -qx "rollout start --wait" "$WORK/calls"

for code in 1 2 3 4; do
  : > "$WORK/calls"
  echo "$code" > "$WORK/code"
  start
  expect "a night that ends with $code is a failed unit" is muster-rollout.service ActiveState failed
  expect "and is not tried again ($code)" called 1
  expect "the operator's program was started ($code)" eventually grep -qx "muster-rollout.service $code" "$WORK/failures"
  eventually is muster-rollout-failed.service ActiveState inactive
done

: > "$WORK/calls"
in_systemd systemctl kill --signal=SEGV musterd.service
eventually is musterd.service ActiveState failed
start
expect "musterd failed: so does the night" is muster-rollout.service ActiveState failed
expect "after its command was called" called 1
expect "each failure had its own start" [ "$(wc -l < "$WORK/failures")" -ge 4 ]
expect "with the exit code in what it reads" grep -q "exit-code, exit [1-4]" "$WORK/text"
expect "and musterd was not started" is musterd.service ActiveState failed
exit $wrong
