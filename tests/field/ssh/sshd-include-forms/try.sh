#!/bin/bash
# What the real sshd makes of a form is what the step says of it.
. "$SRC/tests/field/root.sh"
needs sshd ssh-keygen
in_root ssh-keygen -A > /dev/null
mkdir -p "$root/run/sshd"
printf '#!/bin/sh\nexit 0\n' > "$root/usr/local/sbin/systemctl"
chmod +x "$root/usr/local/sbin/systemctl"
cp "$root/usr/local/sbin/systemctl" "$root/usr/local/sbin/systemd-run"
params='{"settings":{"PasswordAuthentication":"no"},"port":0}'
drop_in() { printf 'PasswordAuthentication %s\n' "$2" > "$root/etc/ssh/sshd_config.d/$1"; }
says() { in_root sshd -T | grep -qi "^passwordauthentication $1"; }
for form in tab equals relative earlier two other; do
  rm -rf "$root/etc/ssh/sshd_config.d" "$root/etc/ssh/site"
  mkdir -p "$root/etc/ssh/sshd_config.d" "$root/etc/ssh/site"
  cp "$CASE/$form.conf" "$root/etc/ssh/sshd_config"
  drop_in 00-muster.conf no
  drop_in 70-site.conf yes
  drop_in ../site/x.conf yes
  drop_in 50-x.conf yes
  # The step's own file in its own words, so that only what counts can differ.
  printf '# Written by muster. Read first: of several values for a setting, sshd takes the first.\nPasswordAuthentication no\n' \
    > "$root/etc/ssh/sshd_config.d/00-muster.conf"
  if says no; then
    expect "$form: the step holds" agent check sshd "$params" > /dev/null
    grep -q already "$WORK/agent.log" || { echo "not so: $form holds"; wrong=1; }
  else
    agent check sshd "$params" > /dev/null
    grep -q already "$WORK/agent.log" && { echo "not so: $form differs"; wrong=1; }
  fi
  : > "$WORK/agent.log"
done
exit $wrong
