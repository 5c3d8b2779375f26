#!/bin/bash
# Real sshd, real useradd and usermod: an administrator with a password and a key, and an account that muster makes.
. "$SRC/tests/field/root.sh"
needs sshd ssh ssh-keygen useradd visudo
ssh-keygen -q -t ed25519 -N '' -f "$WORK/key"
key=$(cat "$WORK/key.pub")
in_root useradd -m -s /bin/bash keeper
# shellcheck disable=SC2016
in_root usermod -p '$6$notasalt$0000000000000000000000000000000000000000000000000000000000000000000000000000000000000.' keeper
mkdir -p "$root/home/keeper/.ssh"
echo "$key" > "$root/home/keeper/.ssh/authorized_keys"
in_root chown -R keeper: /home/keeper/.ssh
chmod 700 "$root/home/keeper/.ssh"
in_root ssh-keygen -A > /dev/null
mkdir -p "$root/run/sshd"

logs_in() { # NAME yes|no: by key, with this UsePAM
  in_root /usr/sbin/sshd -p 2222 -o PidFile=/run/field.pid -o "UsePAM $2" -o ListenAddress=127.0.0.1 -o AddressFamily=inet
  until [ -s "$root/run/field.pid" ]; do sleep 0.05; done
  ssh -F none -p 2222 -i "$WORK/key" -o BatchMode=yes -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o LogLevel=ERROR \
    "$1@127.0.0.1" true < /dev/null
  local status=$?
  kill "$(cat "$root/run/field.pid")"
  while [ -e "$root/run/field.pid" ]; do sleep 0.05; done
  return $status
}
field_of() { in_root sed -n "s/^$1:\([^:]*\):.*/\1/p" /etc/shadow; }
account() { agent apply user "{\"name\":\"$1\",\"keys\":[\"$key\"],\"sudo\":true}" > /dev/null; }

expect "keeper gets in before, without PAM" logs_in keeper no
for name in keeper builder; do
  expect "the step for $name" account "$name"
  expect "no password opens $name" test "$(field_of "$name")" = "*"
  expect "$name gets in without PAM" logs_in "$name" no
  expect "$name gets in with PAM" logs_in "$name" yes
done
# What an older muster left.
in_root usermod -p '!' builder
shut_out() { ! logs_in builder no 2> /dev/null; }
expect "it is the lock that shuts builder out" shut_out
expect "the step for builder, again" account builder
expect "builder gets in without PAM, again" logs_in builder no
exit $wrong
