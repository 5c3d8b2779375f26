#!/bin/bash
# Real sudo whose PAM takes its time: one call of 5 s, and one that takes longer than anyone waits.
. "$SRC/tests/field/ssh/reached.sh"
wait_for() {
  sed -i '/pam_exec/d' "$root/etc/pam.d/sudo"
  echo "session required pam_exec.so quiet /bin/sleep $1" >> "$root/etc/pam.d/sudo"
}
wait_for 5
in_root sh -c 'echo "Defaults logfile=/run/sudo.log" >> /etc/sudoers.d/ops'
serves
looks
expect "root by a slow sudo" host_is '.verdict == "looked_at" and .how == "sudo"'
expect "which was called once" test "$(grep -c COMMAND= "$root/run/sudo.log")" = 1

wait_for 100
serves
looks
expect "a plain user by one that does not answer" host_is '.verdict == "looked_at" and .how == "user" and (.why_user | test("sudo -n"))'
expect "two connections" tried 2
until none_of 'sudo -n'; do sleep 0.5; done
expect "nothing is left when sudo has answered" none_of 'muster-agent|MUSTERROOT'
expect "no folder either" test -z "$(find "$root/tmp" "$root/var/tmp" "$home" -name '.muster.*')"
exit $wrong
